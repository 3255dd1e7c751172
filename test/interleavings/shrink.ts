import type { Deviation } from './schedule.js';

/*
 * Makes a schedule that fails small: leaves out what can be left out, and moves what remains as near to
 * the usual as it will go, for as long as it fails.
 */

/** How often a smaller one is tried at most. */
const MOST_TRIES = 600;

export async function shrink(
  deviations: readonly Deviation[],
  fails: (deviations: readonly Deviation[]) => Promise<boolean>,
  most = MOST_TRIES,
): Promise<readonly Deviation[]> {
  let best = deviations;
  let tries = 0;
  for (let better: boolean = true; better; ) {
    better = false;
    for (const smaller of candidates(best)) {
      tries += 1;
      if (tries > most) return best;
      if (!(await fails(smaller))) continue;
      best = smaller;
      better = true;
      break;
    }
  }
  return best;
}

/** Smaller ones, those that save most first. */
function* candidates(all: readonly Deviation[]): Generator<readonly Deviation[]> {
  for (let size = all.length >> 1; size > 0; size >>= 1) {
    for (let from = all.length - size; from >= 0; from -= size) {
      const rest = all.toSpliced(from, size);
      yield rest;
      // What came after it may come at another step now.
      for (const by of [-1, 1, -2]) yield moved(rest, from, by);
    }
  }
  if (all.length === 1) yield [];
  for (const [i, one] of all.entries()) {
    if (one.fault) yield all.with(i, { step: one.step, pick: one.pick });
    if (one.pick > 0) yield all.with(i, { ...one, pick: one.pick - 1 });
    if (one.pick > 1) yield all.with(i, { ...one, pick: 0 });
  }
}

const moved = (all: readonly Deviation[], from: number, by: number): readonly Deviation[] =>
  all.map((one, i) => (i < from ? one : { ...one, step: Math.max(0, one.step + by) }));
