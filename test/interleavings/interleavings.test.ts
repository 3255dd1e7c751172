import { afterAll, describe, expect, it } from 'vitest';
import { partOf, testEvery } from '../support/mode.js';
import { aimed } from './aimed.js';
import { clockScheduler, randomScheduler } from './choosers.js';
import { explore } from './explore.js';
import { type Found, foundHistories, withoutCure, worldOf } from './found.js';
import { mutants } from './mutants.js';
import { closeEar, play, realConnections } from './play.js';
import { reportOf } from './report.js';
import { replay, type Schedule } from './schedule.js';
import { installScripts } from './scripts.js';
import { shrink } from './shrink.js';
import { FAULTS } from './trip.js';
import { played, smallest } from './worlds.js';

/*
 * The real roles, one round trip at a time, in the order that a scheduler wants. This is the short form
 * with fixed seeds; `npm run interleavings` plays as many as one likes. What it prints of a history
 * that failed can be kept as a file of found/ and is played here from then on.
 */

const SEEDS = 2;
/** Steps in which all orders are gone through, and with a fault in one of them. */
const DEPTH = testEvery > 1 ? 7 : 9;
const FAULT_DEPTH = 3;
const LONG = { timeout: 240_000 };

const found = [...foundHistories.values()];
const scripts = async () => installScripts((await realConnections()).shared);

afterAll(closeEar);

describe('interleavings', { tags: ['own-server', 'one-server'] }, () => {
  it('are determined by their seed, reply by reply, and by their schedule', LONG, async () => {
    const known = await scripts();
    const seen = new Set<string>();
    for (const world of Object.values(played)) {
      for (const seed of [101]) {
        const first = await play(world, randomScheduler(seed), known);
        const second = await play(world, randomScheduler(seed), known);
        const third = await play(world, replay(first), known);
        expect(second).toEqual(first);
        expect(third).toEqual(first);
        seen.add(first.lines.join('\n'));
      }
    }
    expect(seen.size).toBe(Object.keys(played).length);
  });

  it('are aimed at cures that there are', async () => {
    const known = new Set((await mutants()).map(({ history, part }) => `${history}, ${part}`));
    const named = aimed.flatMap(({ history, parts }) => parts.map((n) => `${history}, ${n}`));
    expect(named.filter((one) => !known.has(one))).toEqual([]);
  });

  for (const [name, world] of Object.entries(played)) {
    it(`at random: ${name}`, LONG, async () => {
      const known = await scripts();
      for (let seed = 1; seed <= SEEDS; seed += 1) {
        const history = await play(world, randomScheduler(seed), known);
        const report = history.wrong.length > 0 ? await reportOf(name, world, known, history) : '';
        expect(history.wrong, `seed ${seed}: ${report}`).toEqual([]);
      }
    });
  }

  const clocked = partOf(Object.keys(played));
  for (const [i, [name, world]] of Object.entries(played).entries()) {
    it.runIf(clocked.includes(name))(
      `at random, and the server's clock is set: ${name}`,
      LONG,
      async () => {
        const known = await scripts();
        // A seed for each world: of one and the same the clock is set at the same step in all.
        const history = await play(world, clockScheduler(i + 1), known);
        const report = history.wrong.length > 0 ? await reportOf(name, world, known, history) : '';
        expect(history.wrong, `seed ${i + 1}: ${report}`).toEqual([]);
      },
    );
  }

  for (const [name, world] of Object.entries(smallest)) {
    it(`in all orders of the first steps: ${name}`, LONG, async () => {
      const known = await scripts();
      for (const [depth, faults] of [
        [DEPTH, []],
        [FAULT_DEPTH, FAULTS],
      ] as const) {
        const bounds = { depth, faults, most: 100_000 };
        const { played, exhausted, failed } = await explore(world, known, bounds);
        const report = failed ? await reportOf(name, world, known, failed) : '';
        expect(failed?.wrong ?? [], report).toEqual([]);
        expect(exhausted).toBe(true);
        expect(played).toBeGreaterThan(10);
      }
    });
  }

  for (const one of found) {
    it(`found: ${one.says}`, LONG, async () => {
      const { wrong } = await play(worldOf(one), replay(one), await scripts());
      expect(wrong).toEqual([]);
    });
    it.runIf(one.without)(`found: ${one.says}: not without its cure`, LONG, async () => {
      const { wrong } = await play(worldOf(one), replay(one), await withoutCure(one));
      expect(wrong.join('; ')).toContain(one.wrong);
    });
  }

  it('of a failing one, a small schedule is left that fails as well', LONG, async () => {
    const [one] = found.filter(({ without, deviations }) => without && deviations.length > 0);
    const known = await withoutCure(one as Found);
    const world = worldOf(one as Found);
    const fails = async (deviations: Schedule['deviations']) =>
      (await play(world, replay({ deviations }), known)).wrong.length > 0;
    let seed = 1;
    let history = await play(world, randomScheduler(seed), known);
    while (history.wrong.length === 0) {
      seed += 1;
      history = await play(world, randomScheduler(seed), known);
    }
    const small = await shrink(history.deviations, fails);
    expect(small.length).toBeLessThanOrEqual(history.deviations.length);
    expect(await fails(small)).toBe(true);
    for (const [i] of small.entries()) expect(await fails(small.toSpliced(i, 1))).toBe(false);
  });
});
