import { type History, play, type World } from './play.js';
import type { Decision, Scheduler } from './schedule.js';
import { befalls, commute, type Fault, type Footprint, type Trip } from './trip.js';

/*
 * Goes through all orders of the first steps of a world, with at most one fault, by playing prefixes
 * of decisions again from the start (depth first). Of orders that differ only in steps that commute
 * one is enough: what was tried first at a branching point sleeps in the branches beside it until a
 * step comes that does not commute with it (sleep sets, Godefroid 1996).
 */

export interface Bounds {
  /** Steps in which orders are gone through; later ones go as usual. */
  readonly depth: number;
  /** Faults that are tried, at each of these steps; one in a history. */
  readonly faults: readonly Fault[];
  /** Histories at most. */
  readonly most: number;
}

export interface Explored {
  readonly played: number;
  /** Whether that was all. */
  readonly exhausted: boolean;
  readonly failed: History | undefined;
}

interface Branch {
  readonly decisions: readonly Decision[];
  readonly sleeping: readonly Footprint[];
}

export async function explore(
  world: World,
  scriptNames: ReadonlyMap<string, string>,
  bounds: Bounds,
  isLate: () => boolean = () => false,
): Promise<Explored> {
  const branches: Branch[] = [{ decisions: [], sleeping: [] }];
  let played = 0;
  for (let branch = branches.pop(); branch; branch = branches.pop()) {
    if (played === bounds.most || isLate()) return { played, exhausted: false, failed: undefined };
    const history = await play(world, follow(branch, bounds, branches), scriptNames);
    played += 1;
    if (history.wrong.length > 0) return { played, exhausted: false, failed: history };
  }
  return { played, exhausted: true, failed: undefined };
}

/** Follows a branch, then goes on as usual, and notes the branches that leave on the way. */
function follow({ decisions, sleeping }: Branch, bounds: Bounds, branches: Branch[]): Scheduler {
  const path: Decision[] = [...decisions];
  let sleep = sleeping;
  let covered = false;
  return {
    open: (step) => step < decisions.length,
    decide(options, step) {
      const given = decisions[step];
      if (given) return given;
      if (covered || step >= bounds.depth) return { pick: 0 };
      const trips = options.filter((option): option is Trip => option !== 'time');
      const awake = trips.filter(({ key }) => !sleep.some((one) => one.key === key));
      const [first] = awake;
      if (!first) {
        // Every way on from here is gone by another branch.
        covered = true;
        return { pick: 0 };
      }
      const hurt = path.some(({ fault }) => fault);
      for (const [i, trip] of awake.entries()) {
        const pick = trips.indexOf(trip);
        const before = [...sleep, ...awake.slice(0, i)];
        const still = before.filter((one) => commute(one, trip));
        if (i > 0) branches.push({ decisions: [...path, { pick }], sleeping: still });
        if (hurt) continue;
        for (const fault of bounds.faults.filter((one) => befalls(one, trip))) {
          // It lets time pass, or brings another process: nothing commutes with that.
          branches.push({ decisions: [...path, { pick, fault }], sleeping: [] });
        }
      }
      const decision = { pick: trips.indexOf(first) };
      path.push(decision);
      sleep = sleep.filter((one) => commute(one, first));
      return decision;
    },
  };
}
