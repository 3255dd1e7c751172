import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { back, failure, given, Hand, LEASE_MS, success } from '../support/given.js';
import { inspect } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories that broke an earlier protocol, each with the cure that the scripts have for it
 * (trace.ts says how they are played). docs/guarantees.md names them.
 */

useTestClock();

const traces: Record<string, Trace> = {
  // fail(delay) -> leave -> tend: the entry belongs to a consumer without permit -> due 0.
  'a delayed retry keeps its delay when the worker that failed it leaves': {
    async play() {
      const scene = await given.filled({ items: 1, attempts: 2 });
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      await worker.settle([failure(only!, 100_000)], { keep: 0 });
      await scene.request.tend(scene.generation, '');
      const { due, now, counts } = await inspect(scene);
      expect(counts).toMatchObject({ delayed: 1, ready: 0 });
      expect(due[0]).toBeGreaterThan(now + 90_000);
    },
    without: [{ script: 'settle', cure: 'delayed work under the reserved consumer' }],
  },

  // Reclaim, v takes, the zombie's failure parks v's running entry; another runs it beside v.
  'the failure of a worker that lost its lease does not touch what another runs by then': {
    async play() {
      const scene = await given.sealed({ items: 1, attempts: 2 });
      const zombie = new Hand(scene, 'zombie');
      const heir = new Hand(scene, 'heir');
      const [only] = await zombie.hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await heir.enter(1);
      await heir.take(1);
      await zombie.settle([failure(only!)]);
      const { pending, tries } = await inspect(scene);
      expect(pending).toMatchObject([{ index: 0, owner: 'heir' }]);
      expect(tries).toEqual({});
    },
    without: [{ script: 'settle', cure: 'owner check on failure' }],
  },

  // due keeps a settled id: ready too high, in flight -1.
  'the success of a worker that lost its lease counts, and takes the entry out of the pool': {
    async play() {
      const scene = await given.filled({ items: 2 });
      const zombie = new Hand(scene, 'zombie');
      const [first] = await zombie.hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).due).toEqual({ 0: 0 });
      await zombie.settle([success(first!)]);
      const { due, counts } = await inspect(scene);
      expect(due).toEqual({});
      expect(counts).toMatchObject({ succeeded: 1, ready: 1, inFlight: 0 });
    },
    without: [{ script: 'settle', cure: 'due entry removed on success' }],
  },

  // XGROUP DELCONSUMER deletes the entries of the consumer with it: total 1 = 0.
  'nothing is lost when the consumer of a dead worker is removed': {
    async play() {
      const scene = await given.filled({ items: 1 });
      await new Hand(scene, 'dead').hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).counts.ready).toBe(1);
      await scene.request.tend(scene.generation, '');
      const { counts, consumers } = await inspect(scene);
      expect(counts.ready).toBe(1);
      expect(consumers).toEqual(['~']);
    },
    without: [
      {
        script: 'tend',
        cure: 'consumer deleted only when empty',
        change: { becomes: 'pending >= 0' },
      },
      { script: 'tend', cure: 'consumer deleted only when empty, 2' },
    ],
  },

  // A zombie's read that comes after its lease was withdrawn stays for ever.
  'an entry that a worker reads after it lost its lease is reclaimed': {
    async play() {
      const scene = await given.filled({ items: 2 });
      const zombie = new Hand(scene, 'zombie');
      await zombie.enter(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      await zombie.read(1);
      expect((await inspect(scene)).counts.inFlight).toBe(1);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).counts).toMatchObject({ inFlight: 0, ready: 2 });
    },
    without: [
      { script: 'tend', cure: 'reclaim from any consumer without a permit', change: 'never' },
    ],
  },

  // Cancel; the worker returns its last sub-request, and the next tend is a minute away.
  'a sub-request returned to a request that is being cancelled is cancelled': {
    async play() {
      const scene = await given.sealed({ items: 2 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(1);
      expect(await scene.request.cancel(scene.generation)).toMatchObject({ verdict: 'cancelling' });
      expect(await worker.trySettle([back(first!)], { keep: 0 })).toEqual({
        verdict: 'complete',
        outcome: 'cancelled',
      });
      expect((await inspect(scene)).counts.cancelled).toBe(2);
    },
    without: [{ script: 'settle', cure: 'cancel of returned sub-requests' }],
  },

  // Cancel; the worker dies: the tend cancelled what was parked before it reclaimed more.
  'sub-requests of a dead worker are cancelled at once when their request is being cancelled': {
    async play() {
      const scene = await given.sealed({ items: 2 });
      await new Hand(scene).hold(1);
      await scene.request.cancel(scene.generation);
      moveClock(LEASE_MS + 1);
      expect(await scene.request.tend(scene.generation, '')).toEqual({
        verdict: 'complete',
        outcome: 'cancelled',
      });
    },
    without: [
      [
        {
          script: 'tend',
          cure: 'cancel of what a dead worker owned',
          change: { becomes: 'false, math.huge' },
        },
        {
          script: 'tend',
          cure: 'cancel of what a dead worker owned, 2',
          change: {
            becomes:
              '(function() more, nextLease = takeBackFromWorkers(grace) return completeIfDone(request, state, at, channel, spent) end)()',
          },
        },
      ],
    ],
  },
};

playTraces('a history of entries and their owners that broke an earlier protocol', traces);
