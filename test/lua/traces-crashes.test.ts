import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { back, given, Hand, LEASE_MS } from '../support/given.js';
import { inspect } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories that broke an earlier protocol, each with the cure that the scripts have for it
 * (trace.ts says how they are played). docs/guarantees.md names them.
 */

useTestClock();

const traces: Record<string, Trace> = {
  // A killer runs beside a suspect that waits in the same process for its turn: it took its share of
  // three crashes by standing by, and failed though it never did anything.
  'only a sub-request that ran alone can fail by a crash': {
    async play() {
      const scene = await given.sealed({ items: 2, limit: 2, maxCrashes: 2 });
      await new Hand(scene, 'first').hold(2);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const second = new Hand(scene, 'second');
      await second.enter(2);
      const [killer] = await second.take(2);
      await scene.request.runAlone(scene.generation, 'second', 1, [killer!.entry]);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const { counts, failed, crashes } = await inspect(scene);
      expect(counts).toMatchObject({ failed: 1, ready: 1 });
      expect(Object.keys(failed).sort()).toEqual(['0', '0:payload', '0:runs']);
      expect(crashes).toEqual({ 1: 2 });
    },
    without: [
      { script: 'tend', cure: 'the last crash counts only in isolation', change: 'never' },
      { script: 'tend', cure: 'the last crash counts only in isolation, 2' },
      { script: 'run-alone', cure: 'the last crash counts only in isolation, 3' },
    ],
  },

  // It ran alone, was given back, and waits again with the same worker when that one dies.
  'a sub-request that ran alone once is not blamed for a crash while it waits': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, maxCrashes: 2 });
      await new Hand(scene, 'first').hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const second = new Hand(scene, 'second');
      await second.enter(1);
      const [suspect] = await second.take(1);
      await scene.request.runAlone(scene.generation, 'second', 1, [suspect!.entry]);
      await second.settle([back(suspect!)]);
      await second.take(1);
      moveClock(LEASE_MS + 1);
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({ verdict: 'ok' });
      expect((await inspect(scene)).counts).toMatchObject({ failed: 0, ready: 1 });
    },
    without: [
      { script: 'take', cure: 'the record of an isolated run is removed by the next take' },
    ],
  },

  // A worker that had 150 entries died. One tend takes 100 of them back; at the next its lease has already ended.
  'a crash counts for every entry of the worker, also for those that the next tend takes back': {
    async play() {
      const scene = await given.filled({ items: 150, limit: 150 });
      await new Hand(scene, 'dead').hold(150);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await scene.request.tend(scene.generation, '');
      const { crashes, fields } = await inspect(scene);
      expect(Object.keys(crashes)).toHaveLength(150);
      expect(fields).not.toHaveProperty('crashed:dead');
    },
    without: [{ script: 'tend', cure: 'a tend takes back so many in all, 2', change: { skip: 2 } }],
  },

  // A worker closes; a read of it that was under way arrives afterwards, as of a zombie.
  'an entry that a worker reads after it left counts no crash': {
    async play() {
      const scene = await given.filled({ items: 2 });
      const worker = new Hand(scene);
      await worker.hold(1);
      await worker.settle([back({ entry: `${scene.generation}-0` })], { keep: 0 });
      await worker.read(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const { crashes, counts } = await inspect(scene);
      expect(crashes).toEqual({});
      expect(counts).toMatchObject({ ready: 2 });
    },
    without: [{ script: 'tend', cure: 'a late read is no crash' }],
  },
};

playTraces('a history of crashes that broke an earlier protocol', traces);
