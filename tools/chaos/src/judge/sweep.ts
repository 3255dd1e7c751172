import type { Run } from '../evidence/runs.js';

/** One run as an interval: believed, then doubtful, then a zombie's, until its end. Each part may be empty. */
export interface Part {
  readonly run: Run;
  readonly doubtfulMs: number;
  readonly zombieMs: number;
  readonly endMs: number;
}

export interface Swept {
  readonly exceeded: { readonly ms: number; readonly untilMs: number; readonly most: number }[];
  readonly mostOver: number;
  readonly overMs: number;
  readonly doubtfulPeriods: number;
  readonly doubtfulMs: number;
}

type Count = 'believed' | 'doubtful' | 'zombie';

/** Goes through the moments at which a part begins or ends; at the same moment, ends come first. */
export function sweep(parts: readonly Part[], limit: number): Swept {
  const steps: { ms: number; by: 1 | -1; what: Count }[] = [];
  const span = (fromMs: number, toMs: number, what: Count) => {
    if (toMs > fromMs) steps.push({ ms: fromMs, by: 1, what }, { ms: toMs, by: -1, what });
  };
  for (const { run, doubtfulMs, zombieMs, endMs } of parts) {
    span(run.startMs, doubtfulMs, 'believed');
    span(doubtfulMs, zombieMs, 'doubtful');
    span(zombieMs, endMs, 'zombie');
  }
  steps.sort((a, b) => a.ms - b.ms || a.by - b.by);
  const now = { believed: 0, doubtful: 0, zombie: 0 };
  const exceeded: { ms: number; untilMs: number; most: number }[] = [];
  let [mostOver, overMs, doubtfulPeriods, doubtfulMs] = [0, 0, 0, 0];
  let excess: { ms: number; untilMs: number; most: number } | undefined;
  let inDoubt = false;
  for (const [i, { ms, by, what }] of steps.entries()) {
    now[what] += by;
    const next = steps[i + 1]?.ms ?? ms;
    // All steps of one moment are one: only a state that lasts is judged.
    if (next === ms) continue;
    const lastsMs = next - ms;
    const over = now.believed + now.doubtful + now.zombie - limit;
    if (over > 0) overMs += over * lastsMs;
    mostOver = Math.max(mostOver, over);
    if (now.believed > limit) {
      if (!excess) {
        excess = { ms, untilMs: ms, most: 0 };
        exceeded.push(excess);
      }
      excess.most = Math.max(excess.most, now.believed);
      excess.untilMs = next;
    } else excess = undefined;
    const doubtful = now.believed <= limit && now.believed + now.doubtful > limit;
    if (doubtful && !inDoubt) doubtfulPeriods += 1;
    if (doubtful) doubtfulMs += lastsMs;
    inDoubt = doubtful;
  }
  return { exceeded, mostOver, overMs, doubtfulPeriods, doubtfulMs };
}
