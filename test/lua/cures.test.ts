import { Connection, parseToken, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  append,
  back,
  failure,
  given,
  Hand,
  items,
  LEASE_MS,
  PRODUCER,
  popAll,
  type Scene,
  success,
  tickOnce,
} from '../support/given.js';
import { pass } from '../support/pass.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';
import { until } from '../support/until.js';

/*
 * Short histories, each for one cure of the scripts that no history of traces.test.ts needs. Most of
 * them would end well without it too, later: `tend` heals much. So these tests check the state before it does.
 */

useTestClock();

/** The entry of a request with one sub-request, read by a worker that had left before: no permit. */
async function heldWithoutPermit(): Promise<{
  scene: Scene;
  late: Hand;
  entry: { entry: string };
}> {
  const scene = await given.filled({ items: 1, limit: 1, attempts: 2 });
  await popAll(scene);
  const late = new Hand(scene, 'late');
  await late.enter(1);
  await late.settle([], { keep: 0 });
  const [entry] = await late.read(1);
  // The token of the leave brings somebody who finds nothing.
  expect(await new Hand(scene, 'other').enter(1)).toMatchObject({ permits: 0, mint: 0 });
  expect(await inspect(scene)).toMatchObject({ out: 0, granted: 0, counts: { inFlight: 1 } });
  return { scene, late, entry: entry! };
}

const traces: Record<string, Trace> = {
  'the entry of a sub-request names its generation and index, whoever appended it and how often': {
    async play() {
      const scene = await given.filled({ items: 3, limit: 9 });
      const { generation, request } = scene;
      // An id that the server makes begins with the time, as the generation does: not the same millisecond.
      await until(async () => Date.now() > generation);
      await request.append(generation, 'other', 0, items(2));
      await request.append(generation, 'other', 0, items(2));
      await append(scene, 2, 3);
      const entries = await new Hand(scene).hold(9);
      expect(entries.map(({ entry }) => entry)).toEqual(
        Array.from({ length: 7 }, (_, index) => `${generation}-${index}`),
      );
      await inspect(scene);
    },
    without: [
      {
        script: 'append',
        cure: 'explicit ids',
        change: { becomes: "local id, following = '*', '*'" },
      },
    ],
  },

  // The number of the call (P1, P2) refuses it as well, so that one is taken out first.
  'a settle that arrives twice frees its permits once, also without its number': {
    async play() {
      const scene = await given.filled({ items: 6, limit: 3 });
      const worker = new Hand(scene);
      const [first] = await worker.hold(3);
      await worker.settle([success(first!)], { keep: 2, running: 2 });
      await worker.settle([success(first!)], { keep: 2, running: 2, op: worker.op });
      expect((await inspect(scene)).permits).toEqual({ worker: 2 });
    },
    without: [
      [
        { script: 'settle', cure: 'absolute keep in settle' },
        {
          script: 'settle',
          cure: 'permits above a lowered limit are taken back',
          change: { becomes: 'math.max(0, permits - (#ARGV - 7) / 4)' },
        },
      ],
    ],
  },

  'an item appended to a request that nobody works on gets a token': {
    async play() {
      const scene = await given.created();
      await append(scene, 2);
      expect((await inspectQueue(scene)).lists[50]).toHaveLength(1);
    },
    without: [{ script: 'append', cure: 'top-up in append', change: { becomes: '0' } }],
  },

  'a retry of a worker without a permit gets a token': {
    async play() {
      const { late, entry } = await heldWithoutPermit();
      expect((await late.settle([failure(entry)], { keep: 0 })).mint).toBe(1);
    },
    without: [{ script: 'settle', cure: 'top-up in retry', change: { becomes: "kind ~= 'f'" } }],
  },

  'a sub-request returned by a worker without a permit gets a token': {
    async play() {
      const { late, entry } = await heldWithoutPermit();
      expect((await late.settle([back(entry)], { keep: 0 })).mint).toBe(1);
    },
    without: [{ script: 'settle', cure: 'top-up in retry', change: { becomes: "kind == 'f'" } }],
  },

  'a sub-request that is reclaimed from a dead worker gets a token by the same tend': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      await popAll(scene);
      await new Hand(scene, 'dead').hold(1);
      moveClock(LEASE_MS + 1);
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({ mint: 1 });
    },
    without: [{ script: 'tend', cure: 'top-up in reclaim', change: { becomes: '0' } }],
  },

  'a delayed retry gets a token by the tend at which it is due': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, attempts: 2 });
      await popAll(scene);
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      const { nextDue } = await worker.settle([failure(only!, 40_000)], { keep: 0 });
      expect(nextDue).toBeGreaterThan(0);
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({
        mint: 0,
        next: nextDue,
      });
      moveClock(40_001);
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({ mint: 1 });
    },
    without: [
      { script: 'tend', cure: 'top-up in reclaim', change: { becomes: '0' } },
      { script: 'tend', cure: 'top-up in retry, when it is due' },
    ],
  },

  'the request that was due first is popped first, whichever tokens were minted first': {
    async play() {
      const later = await given.sealed({ runAt: 7, expedite: true });
      const options = { runAt: 5, expedite: true, queue: later.queue.keys.queue };
      const first = await given.sealed(options);
      const tokens = await popAll(first);
      expect(tokens.map((token) => parseToken(token).id)).toEqual([first.id, later.id]);
    },
    without: [
      [
        { script: 'push', cure: 'a lane in due order', change: 'never' },
        { script: 'push', cure: 'a lane in due order, 2', change: 'always' },
      ],
    ],
  },

  'a token that is lost from a lane is missed while another one waits there': {
    async play() {
      const first = await given.sealed({ runAt: 5, expedite: true });
      await popAll(first);
      const options = { runAt: 7, expedite: true, queue: first.queue.keys.queue };
      const later = await given.sealed(options);
      for (let passed = 0; passed < 60_000; passed += 3_000) {
        moveClock(3_000);
        await tickOnce(first);
      }
      const tokens = await popAll(first);
      expect(tokens.map((token) => parseToken(token).id)).toEqual([first.id, later.id]);
    },
    without: [
      { script: 'tick', cure: 'tokens lost from a lane', change: 'never' },
      // Then those that wait would be taken for lost, and become more and more.
      { script: 'tick', cure: 'tokens lost from a lane', change: 'always' },
    ],
  },

  'a token that never reached its lane is missed by a worker that does not know the lane': {
    async play() {
      const scene = await given.created({ runAt: 5, expedite: true });
      const { id, generation, request, connection } = scene;
      // Its tokens are lost with its producer.
      await request.append(generation, PRODUCER, 0, ['1']);
      await request.seal(generation, PRODUCER, 1);
      const another = (): Scene => {
        const queue = new QueueCommands(connection, scene.queue.keys.queue);
        return { ...scene, queue };
      };
      const gone = another();
      await gone.queue.scheduleTend(id, generation, 0);
      expect(await tickOnce(gone)).toBe(1);
      const others = another();
      for (let passed = 0; passed < 60_000; passed += 3_000) {
        moveClock(3_000);
        await tickOnce(others);
      }
      expect((await popAll(others)).map((token) => parseToken(token).id)).toEqual([id]);
    },
    without: [{ script: 'tick', cure: 'tokens lost before their lane was known' }],
  },

  'one lost token of ten is missed while nine workers stay busy': {
    async play() {
      const scene = await given.sealed({ items: 20, limit: 10 });
      await popAll(scene);
      const busy = Array.from({ length: 9 }, (_, i) => new Hand(scene, `w${i}`));
      for (const worker of busy) await worker.hold(1);
      let tokens = 0;
      for (let passed = 0; tokens === 0 && passed < 60_000; passed += 3_000) {
        moveClock(3_000);
        if (passed % 9_000 === 0) for (const worker of busy) await worker.renew();
        await tickOnce(scene);
        tokens = (await popAll(scene)).length;
      }
      expect((await inspect(scene)).granted).toBe(9);
      expect(tokens).toBe(1);
    },
    without: [
      {
        script: 'tend',
        cure: 'partial loss',
        change: {
          becomes:
            'state.outBefore > 0 and state.granted == 0 and tonumber(passed) == state.epoch - 1',
        },
      },
    ],
  },

  'a request whose producer died without a seal is sealed, and ends': {
    async play() {
      const scene = await given.created({ producerLeaseMs: 9_000, onProducerLost: 'seal' });
      await pass(scene, 21_000);
      expect(await inspect(scene)).toMatchObject({ status: 'complete', outcome: 'succeeded' });
      expect((await inspectQueue(scene)).open).toEqual({});
    },
    without: [{ script: 'tend', cure: 'producer lease', change: 'never' }],
  },

  'a request whose producer gives a sign of life stays open': {
    async play() {
      const scene = await given.created({ producerLeaseMs: 9_000 });
      moveClock(8_000);
      await scene.request.renewProducer(scene.generation);
      moveClock(8_000);
      await scene.request.tend(scene.generation, '');
      await append(scene, 1);
      moveClock(8_000);
      await scene.request.tend(scene.generation, '');
      expect((await inspect(scene)).status).toBe('open');
    },
    without: [
      { script: 'renew-producer', cure: 'producer lease, renewed by calls' },
      { script: 'append', cure: 'producer lease, renewed by calls, 2', change: { skip: 2 } },
    ],
  },

  'a sub-request that was delivered often and failed once is tried again': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, attempts: 2 });
      await new Hand(scene, 'dead').hold(1);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const worker = new Hand(scene);
      await worker.enter(1, []);
      const [only] = await worker.take(1);
      await worker.settle([failure(only!)]);
      const { pending, tries, counts } = await inspect(scene);
      expect(pending).toMatchObject([{ deliveries: 2 }]);
      expect(tries).toEqual({ 0: 1 });
      expect(counts).toMatchObject({ ready: 1, failed: 0 });
    },
    without: [
      {
        script: 'settle',
        cure: 'attempts counted apart from deliveries',
        change: { becomes: 'owned[4]' },
      },
    ],
  },

  'when others settled a part of a batch, the rest counts, with its results': {
    async play() {
      const scene = await given.filled({ items: 4, limit: 3 });
      const zombie = new Hand(scene, 'zombie');
      const held = await zombie.hold(3);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const heir = new Hand(scene, 'heir');
      await heir.enter(1, []);
      const [first] = await heir.take(1);
      await heir.settle([success(first!, 'heir')]);
      await zombie.settle(held.map((entry) => success(entry, 'zombie')));
      const { counts, results } = await inspect(scene);
      expect(counts).toMatchObject({ succeeded: 3, ready: 1 });
      expect(results.map(({ index, value }) => `${index} ${value}`)).toEqual([
        '0 heir',
        '1 zombie',
        '2 zombie',
      ]);
    },
    without: [
      {
        script: 'settle',
        cure: 'XACK-gated counting, of a part of a batch',
        change: { becomes: "redis.call('XACK', batch.work, 'workers', id) == -1" },
      },
    ],
  },

  'of successes that are acknowledged together only those count that were pending': {
    async play() {
      const scene = await given.filled({ items: 3, limit: 3 });
      const worker = new Hand(scene);
      const held = (await worker.hold(2)).map((entry) => success(entry));
      await worker.settle(held);
      await worker.settle(held);
      const { counts, results } = await inspect(scene);
      expect(counts).toMatchObject({ succeeded: 2, ready: 1 });
      expect(results).toHaveLength(2);
    },
    without: [
      {
        script: 'settle',
        cure: 'XACK-gated counting, all together',
        change: { becomes: 'successes' },
      },
    ],
  },

  'a worker with new permits is asked for each entry of its former grant': {
    async play() {
      const scene = await given.filled({ items: 4, limit: 3 });
      const zombie = new Hand(scene, 'zombie');
      const held = await zombie.hold(2);
      const { grantNo } = zombie;
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const heir = new Hand(scene, 'heir');
      await heir.enter(1, []);
      const [first] = await heir.take(1);
      await heir.settle([success(first!, 'heir')]);
      await zombie.enter(1, []);
      expect(zombie.grantNo).not.toBe(grantNo);
      await zombie.settle(
        held.map((entry) => success(entry, 'zombie')),
        { grantNo },
      );
      const { counts, results } = await inspect(scene);
      expect(counts).toMatchObject({ succeeded: 2 });
      expect(results.map(({ index, value }) => `${index} ${value}`)).toEqual([
        '0 heir',
        '1 zombie',
      ]);
    },
    without: [{ script: 'settle', cure: 'number of the grant' }],
  },

  // Found by `npm run chaos -- --minutes 0.5 --seed 1`: a zombie's success counts, though its entry is with
  // another worker by then, whose hold lasts and who reports it together with others.
  'a success of a zombie is not recorded again by a worker that reports it with others': {
    async play() {
      const scene = await given.filled({ items: 4, limit: 3 });
      const zombie = new Hand(scene, 'zombie');
      const [lost] = await zombie.hold(2);
      moveClock(LEASE_MS + 1);
      await scene.request.tend(scene.generation, '');
      const heir = new Hand(scene, 'heir');
      await heir.enter(2, []);
      const taken = await heir.take(2);
      await zombie.trySettle([success(lost!, 'zombie')]);
      await heir.settle(taken.map((entry) => success(entry, 'heir')));
      const { counts, results } = await inspect(scene);
      expect(counts).toMatchObject({ succeeded: 2 });
      expect(results.map(({ index, value }) => `${index} ${value}`)).toEqual([
        '0 zombie',
        '1 heir',
      ]);
    },
    // What is noticed when it is too late (lost writes) is taken out as well.
    without: [
      [
        { script: 'settle', cure: 'no success together once one was contested' },
        {
          script: 'settle',
          cure: 'outcomes that others recorded are not recorded together',
          change: { becomes: 'count < 0' },
        },
      ],
    ],
  },

  // A script does not roll back: what it did before the publication failed, stands.
  'a request completes although no notice could be published': {
    tags: ['own-server', 'one-server'],
    async play() {
      const scene = await given.sealed({ items: 1 });
      const worker = new Hand(scene);
      const [only] = await worker.hold(1);
      const admin = scene.connection.client as Redis;
      await admin.call('ACL', 'SETUSER', 'mute', 'on', 'nopass', '+@all', '~*', 'resetchannels');
      const mute = admin.duplicate({ username: 'mute', password: 'any' });
      const numbers = { op: 9, leaseMs: LEASE_MS, keep: 0, running: 0, read: 0 };
      try {
        const request = new RequestCommands(Connection.open(mute), scene.id);
        const outcomes = [success(only!)];
        // Whatever the worker is told, the state decides.
        await request
          .settle(scene.generation, worker.name, numbers, outcomes)
          .catch(() => undefined);
      } finally {
        mute.disconnect();
      }
      const state = await scene.request.state();
      expect(state).toMatchObject({ status: 'complete', outcome: 'succeeded', succeeded: 1 });
      expect(await worker.trySettle([success(only!)])).toMatchObject({ verdict: 'complete' });
    },
    without: [
      [
        { script: 'settle', cure: 'completion state before publish' },
        {
          script: 'settle',
          cure: 'completion state before publish, 2',
          change: {
            becomes:
              "redis.call('SPUBLISH', channel, state.generation .. ' ' .. outcome) local keptMs = writeEnd(request, state, outcome, at, retentionMs, results, kept)",
          },
        },
      ],
    ],
  },
};

playTraces('a cure of the scripts', traces);
