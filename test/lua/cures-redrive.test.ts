import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  failure,
  given,
  Hand,
  items,
  PRODUCER,
  popAll,
  type Scene,
  success,
} from '../support/given.js';
import { pass } from '../support/pass.js';
import { inspect } from '../support/peek.js';
import {
  completeWithFailures,
  openedAgain,
  REDRIVE_LEASE_MS,
  REDRIVER,
  redriveOf,
  runAgain,
} from '../support/redriven.js';
import { playTraces, type Trace } from '../support/trace.js';

/* Short histories of redrives, each for one cure of the scripts. */

useTestClock();

/** A script that throws half-way is judged by what it leaves. */
const whatever = (call: Promise<unknown>) => call.catch(() => undefined);

/** The next life is open, and its first failure runs again and is settled, before the second moves. */
async function oneOfTwoSettled(): Promise<Scene> {
  const scene = await openedAgain(await completeWithFailures([0, 1], { items: 2 }));
  await runAgain(scene, [0]);
  const worker = new Hand(scene);
  const [first] = await worker.hold(1);
  await worker.settle([success(first!)], { keep: 0 });
  return scene;
}

const traces: Record<string, Trace> = {
  'a sub-request that is settled while a redrive moves others keeps its result': {
    async play() {
      const scene = await oneOfTwoSettled();
      await runAgain(scene, [1]);
      await scene.request.seal(scene.generation, PRODUCER, 0);
      const worker = new Hand(scene);
      const [second] = await worker.hold(1);
      await whatever(worker.trySettle([success(second!)]));
      const { results, status } = await inspect(scene);
      expect(status).toBe('complete');
      expect(results).toEqual([
        { index: 0, failed: false, value: 'done' },
        { index: 1, failed: false, value: 'done' },
      ]);
    },
    without: [{ script: 'settle', cure: 'records rise while a redrive moves' }],
  },

  'a sub-request that fails by a crash while a redrive moves others is recorded as well': {
    async play() {
      const before = await completeWithFailures([0, 1], { items: 2, maxCrashes: 1 });
      const scene = await openedAgain(before);
      await runAgain(scene, [0]);
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([success(first!)], { keep: 0 });
      await runAgain(scene, [1]);
      await new Hand(scene, 'dead').hold(1);
      await scene.request.seal(scene.generation, PRODUCER, 0);
      moveClock(REDRIVE_LEASE_MS + 1);
      await whatever(scene.request.tend(scene.generation, ''));
      expect((await inspect(scene)).counts).toMatchObject({ succeeded: 1, failed: 1 });
    },
    without: [{ script: 'tend', cure: 'records rise while a redrive moves' }],
  },

  'a sub-request that failed anew in this generation is not moved again by a late call': {
    async play() {
      const scene = await openedAgain(await completeWithFailures([0, 1], { items: 2 }));
      await runAgain(scene, [0, 1]);
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([failure(first!)], { keep: 0 });
      const again = redriveOf(scene).runAgain(scene.generation, REDRIVER, [0, 1]);
      expect(await whatever(again)).toMatchObject({ verdict: 'ok', moved: 2 });
      const { counts, work } = await inspect(scene);
      expect(counts).toMatchObject({ failed: 1, ready: 1 });
      expect(work).toEqual([0, 1]);
    },
    // Each refuses it alone: an entry cannot be added twice, and its failure is of this life.
    without: [
      [
        { script: 'run-again', cure: 'a failure moves once' },
        { script: 'run-again', cure: 'a failure moves once, 2' },
      ],
    ],
  },

  'a sub-request that runs again does not count as failed': {
    async play() {
      const scene = await openedAgain(await completeWithFailures([1], { items: 3 }));
      await runAgain(scene, [1]);
      expect((await inspect(scene)).counts).toMatchObject({ failed: 0, ready: 1, total: 3 });
    },
    without: [
      { script: 'run-again', cure: 'a moved failure is not counted as failed' },
      { script: 'run-again', cure: 'a moved failure is not counted as failed, 2' },
    ],
  },

  'another redrive of the same generation moves nothing and opens nothing': {
    async play() {
      const scene = await openedAgain(await completeWithFailures([0, 1], { items: 2 }));
      const redrive = redriveOf(scene);
      const { generation } = scene;
      const opened = await redrive.open(generation, 'another', REDRIVE_LEASE_MS);
      expect(opened).toMatchObject({ verdict: 'exists' });
      expect(await redrive.runAgain(generation, 'another', [0])).toEqual({ verdict: 'sealed' });
      expect((await inspect(scene)).counts.failed).toBe(2);
    },
    without: [
      { script: 'redrive', cure: 'a redrive belongs to its owner', change: 'always' },
      { script: 'run-again', cure: 'a redrive belongs to its owner, 2', change: 'never' },
    ],
  },

  'a generation that is not complete is not redriven': {
    async play() {
      const scene = await given.sealed({ items: 2, limit: 2 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(2);
      await worker.settle([failure(first!)], { keep: 1, running: 1 });
      const asked = scene.generation + 5;
      const opened = await redriveOf(scene).open(asked, REDRIVER, REDRIVE_LEASE_MS);
      expect(opened).toMatchObject({ verdict: 'exists', status: 'sealed' });
      expect(await inspect(scene)).toMatchObject({ status: 'sealed', counts: { inFlight: 1 } });
    },
    without: [{ script: 'redrive', cure: 'only a complete request is redriven', change: 'never' }],
  },

  'a redrive that was refused cannot be carried out later, when nobody tends it': {
    async play() {
      const scene = await given.sealed({ items: 1 });
      const asked = scene.generation + 5;
      const redrive = redriveOf(scene);
      await redrive.open(asked, REDRIVER, REDRIVE_LEASE_MS);
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.trySettle([failure(only!)]);
      expect(await redrive.open(asked, REDRIVER, REDRIVE_LEASE_MS)).toMatchObject({
        verdict: 'void',
      });
    },
    without: [
      { script: 'redrive', cure: 'a refused redrive is refused for good' },
      { script: 'redrive', cure: 'a refused redrive is refused for good, 2', change: 'never' },
    ],
  },

  'a redrive of failures that are there no more opens nothing': {
    async play() {
      const before = await completeWithFailures([1]);
      const asked = await before.queue.intent(before.id);
      const redrive = redriveOf(before);
      const opened = await redrive.open(asked, REDRIVER, REDRIVE_LEASE_MS, [0, 99]);
      expect(opened).toEqual({ verdict: 'none' });
      const { generation, status } = await inspect(before);
      expect({ generation, status }).toEqual({ generation: before.generation, status: 'complete' });
    },
    without: [{ script: 'redrive', cure: 'a redrive of nothing opens nothing', change: 'never' }],
  },

  'a redrive of nothing is given up, so nobody opens that generation when nobody tends it': {
    async play() {
      const before = await completeWithFailures([1]);
      const asked = await before.queue.intent(before.id);
      const redrive = redriveOf(before);
      await redrive.open(asked, REDRIVER, REDRIVE_LEASE_MS, [0]);
      expect(await redrive.open(asked, 'another', REDRIVE_LEASE_MS, [0, 1])).toEqual({
        verdict: 'void',
        above: asked,
      });
      expect(await redrive.open(asked + 1, 'another', REDRIVE_LEASE_MS, [0, 1])).toMatchObject({
        verdict: 'opened',
      });
    },
    without: [{ script: 'redrive', cure: 'a redrive of nothing is given up for good' }],
  },

  'a generation that is open for a redrive takes no new items': {
    async play() {
      const scene = await openedAgain(await completeWithFailures([1], { items: 3 }));
      await scene.request.append(scene.generation, 'new', 0, items(1));
      await whatever(runAgain(scene, [1]));
      expect((await inspect(scene)).counts.total).toBe(3);
    },
    without: [{ script: 'append', cure: 'a redriven request takes no new items', change: 'never' }],
  },

  'a worker that had a permit when its generation ended has none in the next one': {
    async play() {
      const first = await given.sealed({ items: 2, limit: 2 });
      const [dead, worker] = [new Hand(first, 'dead'), new Hand(first)];
      await dead.enter(1);
      const [one] = await worker.hold(1);
      const [two] = await worker.read(1);
      await worker.trySettle([failure(one!), failure(two!)]);
      await first.queue.finish(first.id, first.generation, 'failed');
      const scene = await openedAgain(first);
      await runAgain(scene, [0, 1]);
      expect(await inspect(scene)).toMatchObject({ granted: 0, permits: {} });
      expect(await new Hand(scene, 'new').enter(2)).toMatchObject({ permits: 2 });
    },
    without: [{ script: 'redrive', cure: 'permits end with their generation' }],
  },

  'what a redriven request needs does not expire with the retention of the generation before': {
    async play() {
      const before = await completeWithFailures([1], { retentionMs: 5_000 });
      const scene = await openedAgain(before);
      const { client } = scene.connection;
      for (const key of ['request', 'failed', 'results'] as const)
        expect(await client.pttl(scene.request.keys[key])).toBe(-1);
    },
    without: [
      { script: 'redrive', cure: 'a redriven request is kept' },
      { script: 'redrive', cure: 'a redriven request is kept, 2' },
      { script: 'redrive', cure: 'a redriven request is kept, 3' },
    ],
  },

  'a redrive whose process ended is sealed at the end of its lease: what was moved completes it': {
    async play() {
      const before = await completeWithFailures([0, 1], { items: 2, onProducerLost: 'cancel' });
      const scene = await openedAgain(before);
      await runAgain(scene, [0]);
      await popAll(scene);
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      await worker.settle([success(first!)], { keep: 0 });
      await pass(scene, REDRIVE_LEASE_MS + 1_000);
      expect(await inspect(scene)).toMatchObject({ status: 'complete', outcome: 'failed' });
    },
    without: [{ script: 'redrive', cure: 'a lost redrive is sealed', change: { skip: 2 } }],
  },

  'a redrive does not turn a cancelled request into a successful one': {
    async play() {
      const before = await given.sealed({ items: 2, limit: 1 });
      const { id, generation, queue, request } = before;
      const worker = new Hand(before);
      const [one] = await worker.hold(1);
      await worker.settle([failure(one!)], { keep: 0 });
      await request.cancel(generation);
      await queue.finish(id, generation, 'cancelled');
      const scene = await openedAgain(before);
      await runAgain(scene, [0]);
      await request.seal(scene.generation, PRODUCER, 0);
      const next = new Hand(scene, 'next');
      const [again] = await next.hold(1);
      expect(await next.trySettle([success(again!)])).toMatchObject({ outcome: 'cancelled' });
      expect(await request.state()).toMatchObject({ endReason: '' });
    },
    without: [{ script: 'settle', cure: 'what an earlier generation cancelled stays cancelled' }],
  },
};

playTraces('cures of a redrive', traces);
