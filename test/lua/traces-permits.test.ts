import { expect } from 'vitest';
import { useTestClock } from '../support/clock.js';
import { failure, given, Hand, success } from '../support/given.js';
import { inspect } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories that broke an earlier protocol, each with the cure that the scripts have for it
 * (trace.ts says how they are played). docs/guarantees.md names them.
 */

useTestClock();

const traces: Record<string, Trace> = {
  // settle sent twice: 2 succeeded of 1 entry.
  'a success that is reported twice counts once': {
    async play() {
      const scene = await given.filled({ items: 2 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([success(first!)], { grantNo: '' });
      await worker.settle([success(first!)], { grantNo: '' });
      const { counts, results } = await inspect(scene);
      expect(counts.succeeded).toBe(1);
      expect(results).toHaveLength(1);
    },
    without: [
      {
        script: 'settle',
        cure: 'XACK-gated counting, of a part of a batch',
        change: { becomes: "redis.call('XACK', batch.work, 'workers', id) == -1" },
      },
    ],
  },

  // Enter re-sent without op: 2 permits of one token, out 1 for 2 real ones.
  'an enter that is sent twice grants once and counts its token once': {
    async play() {
      const scene = await given.filled({ items: 4, limit: 4 });
      const worker = new Hand(scene);
      await worker.enter(1);
      const before = await inspect(scene);
      expect(await worker.reenter(1)).toMatchObject({ permits: 1, mint: 0 });
      const after = await inspect(scene);
      expect(after.permits).toEqual({ worker: 1 });
      expect(after.out).toBe(before.out);
    },
    without: [{ script: 'enter', cure: 'op number in enter', change: 'always' }],
  },

  // Late enter after leave: a permit held by nobody, limit 1 stands still for a lease.
  'an enter that arrives after the worker left grants nothing': {
    async play() {
      const scene = await given.filled({ items: 2, limit: 1 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([success(first!)], { keep: 0 });
      await scene.request.tend(scene.generation, '');
      await worker.reenter(1, [1], 1);
      expect((await inspect(scene)).permits).toEqual({});
    },
    without: [{ script: 'enter', cure: 'op number in enter', change: 'always' }],
  },

  // Two settles with keep 3, then keep 2; another takes the freed permit; the first arrives again.
  'a settle that arrives again late does not bring permits back': {
    async play() {
      const scene = await given.filled({ items: 6, limit: 3 });
      const worker = new Hand(scene);
      const [first, second] = await worker.hold(3);
      await worker.settle([success(first!)], { keep: 3, running: 2 });
      const late = worker.op;
      await worker.settle([success(second!)], { keep: 1, running: 1 });
      expect((await new Hand(scene, 'other').enter(2)).permits).toBe(2);
      await worker.settle([success(first!)], { keep: 3, running: 3, op: late });
      expect((await inspect(scene)).permits).toEqual({ worker: 1, other: 2 });
    },
    without: [
      [
        {
          script: 'settle',
          cure: 'permits above a lowered limit are taken back',
          change: { becomes: 'math.min(keep, math.max(running, permits - excess))' },
        },
        { script: 'settle', cure: 'absolute keep in settle' },
      ],
    ],
  },

  // Leave, enter again, read; the leave arrives again: the permit is free while the handler runs.
  'a leave that arrives after the worker entered again takes no permit away': {
    async play() {
      const scene = await given.filled({ items: 3, limit: 1 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([success(first!)], { keep: 0 });
      const late = worker.op;
      await worker.hold(1);
      await worker.settle([success(first!)], { keep: 0, op: late });
      expect((await inspect(scene)).permits).toEqual({ worker: 1 });
      expect((await new Hand(scene, 'other').enter(1)).permits).toBe(0);
    },
    without: [{ script: 'settle', cure: 'absolute keep in settle' }],
  },

  // Fail, take again, run; the failure arrives again: parked while it runs, one attempt burnt.
  'a failure that arrives after its worker took the retry does not count for the retry': {
    async play() {
      const scene = await given.filled({ items: 1, attempts: 3 });
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.settle([failure(only!)]);
      const late = worker.op;
      expect(await worker.take(1)).toMatchObject([{ index: 0, tries: 1 }]);
      await worker.settle([failure(only!)], { op: late });
      const { pending, tries } = await inspect(scene);
      expect(tries).toEqual({ 0: 1 });
      expect(pending).toMatchObject([{ index: 0, owner: 'worker' }]);
    },
    without: [{ script: 'settle', cure: 'op number in settle, failures', change: 'always' }],
  },
};

playTraces('a history of calls that came twice or late and broke an earlier protocol', traces);
