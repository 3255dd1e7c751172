import { type HistoryPoint, INTERVAL_MS } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { fresh, NONE, report, rowsOf, seriesOf, succeededOf } from '../support/series.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * The series of a queue: what its workers report with their ticks, in intervals of ten seconds.
 */

useTestClock();

const MINUTE_MS = 60_000;

const traces: Record<string, Trace> = {
  'a report that arrives twice counts once, and the next one contains what a lost one had': {
    async play() {
      const scene = await fresh();
      for (const done of [2, 2, 9]) await scene.queue.tick('a', report(3, [done, 1, 1, 2]));
      expect(await rowsOf(scene)).toEqual([[9, 1, 1, 2, 3, 10, 1]]);
    },
    without: [
      {
        script: 'tick',
        cure: 'a report counts what it has more than the one before',
        change: { becomes: '0' },
      },
    ],
  },

  'a report that arrives behind a later one counts nothing': {
    async play() {
      const scene = await fresh();
      await scene.queue.tick('a', report(3, [9, 0, 0, 0]));
      moveClock(MINUTE_MS);
      for (const done of [9, 2, 9]) await scene.queue.tick('a', report(3, [done, 0, 0, 0]));
      expect((await succeededOf(scene)).filter((n) => n > 0)).toEqual([9]);
    },
    without: [
      {
        script: 'tick',
        cure: 'a report that arrives behind a later one counts nothing',
        change: 'never',
      },
    ],
  },

  'what was done between two reports is spread over the intervals between them': {
    async play() {
      const scene = await fresh();
      moveClock(5_000);
      await scene.queue.tick('a', report(4, NONE));
      moveClock(20_000);
      await scene.queue.tick('a', report(6, [1_000, 0, 0, 1]));
      const [now = 0, before = 0, first = 0] = await succeededOf(scene);
      expect(now + before + first).toBe(1_000);
      for (const [got, of] of [
        [now, 250],
        [before, 500],
        [first, 250],
      ] as const)
        expect(Math.abs(got - of)).toBeLessThan(50);
      // One that cannot be divided counts now.
      expect((await seriesOf(scene)).map(({ retried }) => retried)).toEqual([1, 0, 0]);
      // Nobody reported in between: it went on as before.
      expect((await seriesOf(scene)).map(({ inFlight }) => inFlight)).toEqual([6, 4, 4]);
    },
    without: [
      {
        script: 'tick',
        cure: 'work is spread over the intervals in which it was done',
        change: { becomes: '0' },
      },
    ],
  },

  'the series is at most an hour long': {
    async play() {
      const scene = await fresh();
      for (let i = 0; i < 370; i += 1) {
        await scene.queue.tick('a', report(1, [i, 0, 0, 0]));
        moveClock(INTERVAL_MS);
      }
      expect(await seriesOf(scene)).toHaveLength(361);
    },
    without: [{ script: 'tick', cure: 'the series of a queue is bounded' }],
  },

  'of a fleet of thousands some workers are asked, and stand for the others': {
    async play() {
      const scene = await fresh();
      const { workerInfo } = scene.queue.keys;
      const fleet = Array.from({ length: 4_000 }, (_, i) => [`w${i}`, report(i % 4, NONE)]);
      await scene.connection.client.hset(workerInfo, ...fleet.flat());
      await scene.queue.tick('w0', report(0, [1, 0, 0, 0]));
      const [{ inFlight, slots, workers }] = (await seriesOf(scene)) as [HistoryPoint];
      expect(workers).toBeGreaterThan(3_990);
      expect(workers).toBeLessThan(4_010);
      expect(slots).toBe(10 * workers);
      expect(Math.abs(inFlight - 6_000)).toBeLessThan(600);
      await scene.connection.client.unlink(workerInfo);
    },
    without: [{ script: 'tick', cure: 'of many workers some are asked', change: { becomes: '1' } }],
  },

  'after the clock went back, no interval lies ahead, and one that has just begun stays': {
    async play() {
      const scene = await fresh();
      for (let i = 1; i <= 5; i += 1) {
        await scene.queue.tick('a', report(1, [i, 0, 0, 0]));
        moveClock(INTERVAL_MS);
      }
      moveClock(-15_000);
      await scene.queue.tick('a', report(1, [6, 0, 0, 0]));
      const counts = await succeededOf(scene);
      expect(counts).toHaveLength(5);
      expect(counts.reduce((sum, n) => sum + n, 0)).toBe(6);
      moveClock(-MINUTE_MS);
      await scene.queue.tick('a', report(1, [7, 0, 0, 0]));
      expect(await succeededOf(scene)).toEqual([1]);
      const { now, intervals } = await scene.queue.series(9);
      expect(intervals[0]?.at).toBeLessThanOrEqual(now);
    },
    without: [{ script: 'tick', cure: 'intervals that lie ahead are removed', change: 'never' }],
  },

  'the last report of a worker that leaves counts once': {
    async play() {
      const scene = await fresh();
      await scene.queue.tick('a', report(3, [4, 0, 0, 0]));
      const last = report(0, [9, 0, 0, 0], [4, 0, 0, 0]);
      for (let i = 0; i < 3; i += 1) await scene.queue.deregister('a', last);
      expect(await rowsOf(scene)).toEqual([[9, 0, 0, 0, 0, 10, 1]]);
    },
    without: [
      { script: 'deregister', cure: 'the last report of a worker counts once', change: 'always' },
    ],
  },
};

playTraces('the series of a queue', traces);
