import fc from 'fast-check';
import { World } from './world.js';

/*
 * Random histories: the settings of a world, the steps that are taken in it, and how one history is played.
 */

const setting = fc.record({
  workers: fc.integer({ min: 1, max: 3 }),
  slots: fc.integer({ min: 1, max: 3 }),
  limit: fc.integer({ min: 1, max: 3 }),
  attempts: fc.integer({ min: 1, max: 2 }),
  maxCrashes: fc.integer({ min: 1, max: 3 }),
  onProducerLost: fc.constantFrom('seal' as const, 'seal' as const, 'cancel' as const),
  items: fc.integer({ min: 0, max: 9 }),
  submitted: fc.constantFrom(true, true, false),
  failed: fc.constantFrom(false, false, true),
  meddling: fc.constantFrom(false, false, true),
  neighbour: fc.constantFrom(null, null, 0, 1),
  operated: fc.constantFrom(false, true, true),
  deadlineMs: fc.constantFrom(null, null, null, 20_000, 60_000),
  tolerated: fc.constantFrom(null, null, null, 0, 1),
  clockSteps: fc.boolean(),
});

const step = fc.record({
  who: fc.nat({ max: 19 }),
  what: fc.nat({ max: 1_000 }),
  fault: fc.nat({ max: 99 }),
});

/** What many histories came to. */
export interface Tally {
  /** Longest time from the last fault until everything had ended. */
  slowestMs: number;
  /** Requests by their outcome. */
  readonly outcomes: Record<string, number>;
  /** Sub-requests that failed by crashes, and suspects that ran isolated. */
  crashed: number;
  isolated: number;
  /** Requests that ended in a generation that a redrive opened. */
  redriven: number;
}

export const nothingYet = (): Tally => ({
  slowestMs: 0,
  outcomes: {},
  crashed: 0,
  isolated: 0,
  redriven: 0,
});

function add(tally: Tally, world: World): void {
  tally.slowestMs = Math.max(tally.slowestMs, world.healedAfterMs);
  for (const [outcome, n] of Object.entries(world.ends))
    tally.outcomes[outcome] = (tally.outcomes[outcome] ?? 0) + n;
  tally.crashed += world.crashed;
  tally.redriven += world.redriven;
  tally.isolated += world.runs.isolated;
}

/** One history: the steps, then no more faults until all has ended, then every late call arrives. */
export const histories = (tally: Tally) =>
  fc.asyncProperty(
    setting,
    fc.array(step, { minLength: 40, maxLength: 200, size: 'max' }),
    async (given, steps) => {
      const world = await World.create(given);
      try {
        for (const one of steps) await world.step(one);
        await world.heal();
        await world.judge();
        add(tally, world);
        await world.allArrive();
        await world.heal();
        await world.judge();
      } finally {
        await world.remove();
      }
    },
  );
