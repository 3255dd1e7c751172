import { QueueControlCommands, ReaderCommands } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  append,
  create,
  failure,
  freshName,
  given,
  Hand,
  holds,
  LEASE_MS,
  popAll,
  type Scene,
  tickOnce,
} from '../support/given.js';
import { pass } from '../support/pass.js';
import { inspect, inspectQueue } from '../support/peek.js';
import { running } from '../support/read-ahead.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * The server's clock steps, as by hand, by ntpd, or by a failover to a server whose clock is behind; or all stood
 * still, which is a step forward to who wakes up. No stored time is believed beyond now and the wait that was meant.
 */

useTestClock();

const HOUR_MS = 3_600_000;

/** A worker dies while it runs a sub-request; the agenda was ticked. */
async function deadWorker(): Promise<Scene> {
  const scene = await given.sealed({ items: 1, limit: 1 });
  await new Hand(scene, 'dead').hold(1);
  await tickOnce(scene);
  return scene;
}

/** Its token is lost, the clock goes back by an hour, and it is tended all the same. */
async function expectTendedInTime(scene: Scene): Promise<void> {
  await popAll(scene);
  moveClock(-HOUR_MS);
  await pass(scene, 60_000);
  expect((await inspect(scene)).epoch).toBeGreaterThan(1);
}

const permitsOf = async (scene: Scene) => (await inspect(scene)).permits;
/** Server time, by the scripts' clock. */
const nowOf = async (scene: Scene) => (await scene.queue.tick('', '')).now;

const traces: Record<string, Trace> = {
  'who followed the results before the clock went back by an hour does not follow for an hour': {
    async play() {
      const { scene, hand } = await running(2);
      await new ReaderCommands(scene.connection, scene.id).follow(scene.generation);
      expect(await hand.settle([])).toMatchObject({ live: true });
      moveClock(-HOUR_MS);
      expect(await hand.settle([])).toMatchObject({ live: false });
    },
    without: [{ script: 'settle', cure: 'a reader is not believed for longer than 10 s' }],
  },

  'after the clock went back by an hour, the permits of a dead worker are withdrawn within its lease':
    {
      async play() {
        const scene = await deadWorker();
        moveClock(-HOUR_MS);
        await pass(scene, 2_000);
        expect(await permitsOf(scene)).toEqual({ dead: 1 });
        await pass(scene, LEASE_MS + 20_000);
        expect(await permitsOf(scene)).toEqual({});
      },
      without: [
        {
          script: 'tend',
          cure: 'a lease is not believed beyond its length',
          change: { becomes: 'written' },
        },
        { script: 'tick', cure: 'a lease is not believed beyond its length, 2' },
      ],
    },

  'after the clock went back, the agenda is shifted page by page, and each id once': {
    async play() {
      const scene = await given.opened();
      const ids = Array.from({ length: 2_500 }, () => freshName('later'));
      const generations = await Promise.all(ids.map((id) => scene.queue.intent(id)));
      const { client } = scene.connection;
      const { agenda } = scene.queue.keys;
      const far = (await nowOf(scene)) + 2 * HOUR_MS;
      await client.zadd(agenda, ...ids.flatMap((id, i) => [far + i, id]));
      moveClock(-HOUR_MS);
      for (let i = 0; i < 4; i += 1) await scene.queue.tick('', '');
      const scores = await client.zmscore(agenda, ...ids);
      const shifted = scores.map((score, i) => far + i - Number(score));
      expect(Math.max(...shifted)).toBeLessThan(HOUR_MS + 10_000);
      expect(Math.min(...shifted)).toBeGreaterThan(HOUR_MS - 10_000);
      expect(generations).toHaveLength(2_500);
    },
    without: [
      { script: 'tick', cure: 'the agenda is shifted when the clock went back', change: 'never' },
      { script: 'tick', cure: 'the agenda is shifted when the clock went back, 2' },
    ],
  },

  'a clock that is an hour ahead for a moment gives no grace of an hour': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      await tickOnce(scene);
      moveClock(HOUR_MS);
      await pass(scene, 5_000);
      moveClock(-HOUR_MS);
      await pass(scene, 5_000);
      await popAll(scene);
      await new Hand(scene, 'dead').hold(1);
      await pass(scene, LEASE_MS + 40_000);
      expect(await permitsOf(scene)).toEqual({});
    },
    without: [
      {
        script: 'tick',
        cure: 'an outage before which the clock went back',
        change: { becomes: 'false' },
      },
    ],
  },

  'an outage is not confused with the clock of the server that reports it': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const { request, generation } = scene;
      await new Hand(scene, 'dead').hold(1);
      moveClock(LEASE_MS + 1);
      const at = await nowOf(scene);
      // Its clock is a minute ahead, and it was back some 50 s ago.
      await request.tend(generation, '', at + 10_000, 15_000, at + 60_000);
      expect(await permitsOf(scene)).toEqual({});
    },
    without: [
      { script: 'tend', cure: 'an outage is measured by one clock', change: { becomes: 'time' } },
    ],
  },

  'a late tend noted before the clock went back delays no withdrawal': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const { request, generation } = scene;
      await new Hand(scene, 'dead').hold(1);
      moveClock(LEASE_MS + 1);
      const at = await nowOf(scene);
      await request.tend(generation, '', 0, 15_000, at - 60_000);
      await request.tend(generation, '', 0, 15_000, at - HOUR_MS);
      expect(await permitsOf(scene)).toEqual({ dead: 1 });
      await request.tend(generation, '', 0, 15_000, at - HOUR_MS + 1_000);
      expect(await permitsOf(scene)).toEqual({});
    },
    without: [{ script: 'tend', cure: 'a late tend after the clock went back', change: 'never' }],
  },

  'a producer gets its whole lease again when Redis is back, and no more': {
    async play() {
      const scene = await given.created({ producerLeaseMs: 30_000, onProducerLost: 'cancel' });
      await tickOnce(scene);
      moveClock(45_000);
      await pass(scene, 20_000);
      expect((await inspect(scene)).status).toBe('open');
      expect((await scene.request.renewProducer(scene.generation)).verdict).toBe('ok');
      await pass(scene, 32_000);
      expect((await inspect(scene)).status).toBe('complete');
    },
    without: [{ script: 'tend', cure: 'grace for producers after an outage' }],
  },

  'a tend that was under way while Redis was away gives up no producer': {
    async play() {
      const scene = await given.created({ producerLeaseMs: 30_000, onProducerLost: 'cancel' });
      moveClock(12_000);
      await tickOnce(scene);
      moveClock(9_000);
      const { claims, now, resumedAt } = await scene.queue.tick('', '');
      moveClock(40_000);
      const { generation, passed } = claims[0]!;
      await scene.request.tend(generation, passed, resumedAt, 15_000, now);
      expect((await inspect(scene)).status).toBe('open');
      await tickOnce(scene);
      expect((await scene.request.renewProducer(scene.generation)).verdict).toBe('ok');
    },
    without: [{ script: 'tend', cure: 'grace for producers in a late tend' }],
  },

  'a jump of the clock that is longer than a lease gives it one more term': {
    async play() {
      const scene = await given.created({ producerLeaseMs: 4_000, onProducerLost: 'cancel' });
      await tickOnce(scene);
      moveClock(10_000);
      await pass(scene, 3_000);
      expect((await scene.request.renewProducer(scene.generation)).verdict).toBe('ok');
      moveClock(10_000);
      await pass(scene, 3_000);
      expect((await scene.request.renewProducer(scene.generation)).verdict).toBe('ok');
    },
    without: [
      {
        script: 'tend',
        cure: 'grace for a lease that is shorter than a gap between two ticks',
        change: 'always',
      },
    ],
  },

  'tends that are further apart than a lease lasts prolong it once, not for ever': {
    async play() {
      const scene = await given.created({ producerLeaseMs: 4_000, onProducerLost: 'cancel' });
      for (let i = 0; i < 4; i += 1) {
        moveClock(5_000);
        const at = await nowOf(scene);
        const gap = { gapAt: at, gapMs: 5_000 };
        await scene.request.tend(scene.generation, '', 0, 15_000, at, gap);
        if (i === 0) expect((await inspect(scene)).status).toBe('open');
      }
      expect((await inspect(scene)).status).toBe('complete');
    },
    without: [{ script: 'tend', cure: 'that grace is given once' }],
  },

  'after the clock went back, a producer that is gone is given up within its lease': {
    async play() {
      const scene = await given.created({ producerLeaseMs: 30_000, onProducerLost: 'cancel' });
      await tickOnce(scene);
      moveClock(-HOUR_MS);
      await pass(scene, 55_000);
      expect((await inspect(scene)).status).toBe('complete');
    },
    without: [
      {
        script: 'tend',
        cure: 'a producer lease is not believed beyond its length',
        change: { becomes: 'tonumber(producerUntil)' },
      },
    ],
  },

  'after the clock went back, a request that was delayed waits no longer than its delay': {
    async play() {
      const scene = await given.sealed({ items: 1, delayMs: 10_000 });
      await tickOnce(scene);
      await scene.queue.scheduleTend(scene.id, scene.generation, (await nowOf(scene)) + 10_000);
      moveClock(-HOUR_MS);
      await pass(scene, 25_000);
      expect(await inspect(scene)).toMatchObject({ out: 1 });
    },
    without: [
      {
        script: 'tend',
        cure: 'a delay is not believed beyond its length',
        change: { becomes: 'state.heldUntil' },
      },
      {
        script: 'create',
        cure: 'a delay is not believed beyond its length, 2',
        change: { becomes: "'none'" },
      },
    ],
  },

  'an id that was opened while the clock was ahead is tended in time': {
    async play() {
      const { queue } = (await deadWorker()).queue.keys;
      moveClock(HOUR_MS);
      const scene = await given.sealed({ items: 1, queue });
      await expectTendedInTime(scene);
    },
    without: [
      { script: 'intent', cure: 'an opened id shows how far the clock was', change: { skip: 2 } },
      {
        script: 'tick',
        cure: 'an opened id shows how far the clock was, 2',
        change: { becomes: 'tickedAt' },
      },
    ],
  },

  'an id that was opened while the clock was ahead is tended in time, also before the first tick': {
    async play() {
      const scene = await given.sealed({ items: 1 });
      await expectTendedInTime(scene);
    },
    without: [
      { script: 'intent', cure: 'an opened id shows how far the clock was', change: { skip: 2 } },
    ],
  },

  'when Redis was away before the first tick, and again right after it, a producer has its whole lease to renew':
    {
      async play() {
        const scene = await given.created({ producerLeaseMs: LEASE_MS, onProducerLost: 'cancel' });
        moveClock(HOUR_MS);
        await given.opened({ queue: scene.queue.keys.queue });
        await tickOnce(scene);
        moveClock(2 * LEASE_MS);
        await pass(scene, LEASE_MS - 2_000);
        expect((await scene.request.renewProducer(scene.generation)).verdict).toBe('ok');
      },
      without: [
        { script: 'tick', cure: 'an outage before the first tick', change: { becomes: 'at' } },
        {
          script: 'tick',
          cure: 'an outage before the first tick',
          change: { becomes: 'openedAt' },
        },
        {
          script: 'tick',
          cure: 'no third grace in a row',
          change: { becomes: 'tickedAt ~= known' },
        },
      ],
    },

  'after the clock went back, a retry without a delay is ready at once': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, attempts: 2 });
      const hand = new Hand(scene, 'w');
      const [entry] = await hand.hold(1);
      await hand.settle([failure(entry!, 0)]);
      // Before the clock goes back, the agenda is ticked but the request is not tended.
      await tickOnce(scene);
      moveClock(-HOUR_MS);
      await pass(scene, 60_000);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 1, delayed: 0 });
    },
    without: [
      { script: 'settle', cure: 'a delay of nothing has its length too', change: { becomes: '0' } },
      { script: 'tend', cure: 'the delay of a retry is not believed beyond the longest' },
    ],
  },

  // No tend ran while the clock was ahead, so that none shows later that it was.
  'a retry from a time when the clock was ahead waits no longer than its delay once it is right': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, attempts: 2 });
      const hand = new Hand(scene, 'w');
      const [entry] = await hand.hold(1);
      await tickOnce(scene);
      await scene.request.tend(scene.generation, '');
      moveClock(HOUR_MS);
      await hand.settle([failure(entry!, 2_000)]);
      moveClock(-60_000);
      await pass(scene, 25_000);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 1, delayed: 0 });
    },
    without: [{ script: 'tend', cure: 'the delay of a retry is not believed beyond the longest' }],
  },

  'more than 5,000 retries from a time when the clock was ahead are due after their delay': {
    async play() {
      const scene = await given.sealed({ items: 5_100, limit: 5_100, attempts: 2 });
      const hand = new Hand(scene, 'w');
      const entries = await hand.hold(5_100);
      moveClock(HOUR_MS);
      await hand.settle(entries.map((entry) => failure(entry, 60_000)));
      moveClock(-HOUR_MS);
      await scene.queue.scheduleTend(scene.id, scene.generation, await nowOf(scene));
      await pass(scene, 62_000);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 5_100, delayed: 0 });
    },
    without: [{ script: 'tend', cure: 'delays are shortened page by page' }],
  },

  'when the clock went back and then forward by an hour, no worker loses its lease': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      const worker = new Hand(scene);
      await worker.hold(1);
      await tickOnce(scene);
      moveClock(-60_000);
      await tickOnce(scene);
      moveClock(HOUR_MS);
      await pass(scene, LEASE_MS - 2_000);
      expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
    },
    without: [
      { script: 'tick', cure: 'no third grace in a row', change: { becomes: 'tickedAt ~= known' } },
    ],
  },

  // The last tick lies ahead, so that the length of the outage is not known.
  'when Redis was away right after its clock went back, a worker has its whole lease to renew': {
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1 });
      await tickOnce(scene);
      moveClock(-HOUR_MS);
      const worker = new Hand(scene);
      await worker.hold(1);
      moveClock(2 * LEASE_MS);
      await pass(scene, LEASE_MS - 2_000);
      expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
      expect((await inspect(scene)).counts).toMatchObject({ inFlight: 1, ready: 0 });
    },
    without: [
      {
        script: 'tick',
        cure: 'an outage before which the clock went back',
        change: { becomes: 'false' },
      },
    ],
  },

  'a create that was refused as too old stays refused after the clock went back': {
    async play() {
      const scene = await given.nothing();
      const generation = await scene.queue.intent(scene.id);
      moveClock(HOUR_MS);
      const late = { ...scene, generation };
      await expect(create(late, { owner: 'one' })).resolves.toMatchObject({ verdict: 'void' });
      moveClock(-HOUR_MS);
      await expect(create(late, { owner: 'other' })).resolves.toMatchObject({ verdict: 'void' });
    },
    without: [{ script: 'create', cure: 'a create too old is refused for good' }],
  },

  'after the clock went back, a hold lasts no longer than it was asked for': {
    async play() {
      const scene = await given.sealed({ items: 1 });
      await popAll(scene);
      await holds(scene).hold(scene.generation, 10_000);
      moveClock(-HOUR_MS);
      await scene.request.tend(scene.generation, '');
      moveClock(10_001);
      await holds(scene).hold(scene.generation, 1_000);
      moveClock(1_001);
      const halted = await new Hand(scene).tryEnter(1);
      expect(halted).toMatchObject({ permits: 1 });
    },
    without: [{ script: 'hold', cure: 'a hold is not believed beyond its length' }],
  },

  'after the clock went back, a deadline is no further away than it was when it was set': {
    async play() {
      const scene = await given.sealed({ items: 1, deadlineMs: 60_000 });
      moveClock(-HOUR_MS);
      await scene.request.tend(scene.generation, '');
      moveClock(60_001);
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({ outcome: 'failed' });
    },
    without: [
      {
        script: 'tend',
        cure: 'a deadline is not believed beyond its length',
        change: { becomes: 'tonumber(deadline) or math.huge' },
      },
    ],
  },

  'after the clock went back, a retry waits no longer than the longest delay that was asked for': {
    async play() {
      const scene = await given.sealed({ items: 2, attempts: 3 });
      const worker = new Hand(scene);
      const [first, second] = await worker.hold(2);
      await worker.settle([failure(first!, 9_000)], { running: 1 });
      await worker.settle([failure(second!, 2_000)]);
      await tickOnce(scene);
      await scene.request.tend(scene.generation, '');
      moveClock(-HOUR_MS);
      await scene.request.tend(scene.generation, '');
      moveClock(9_000);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 2, delayed: 0 });
    },
    without: [
      { script: 'tend', cure: 'the delay of a retry is not believed beyond the longest' },
      { script: 'settle', cure: 'the delay of a retry is not believed beyond the longest, 2' },
    ],
  },

  'after the clock went back, a token that was popped and lost is found as soon as before': {
    async play() {
      const scene = await given.filled({ items: 1 });
      await tickOnce(scene);
      moveClock(21_000);
      await tickOnce(scene);
      await popAll(scene);
      await tickOnce(scene);
      moveClock(-HOUR_MS);
      await pass(scene, 30_000);
      expect(await popAll(scene)).not.toEqual([]);
    },
    without: [{ script: 'tick', cure: 'a pop that lies ahead counts as now', change: 'never' }],
  },

  'after the clock went back, a dead worker is removed from the registry in time': {
    async play() {
      const scene = await given.opened();
      await scene.queue.tick('gone', '{}');
      moveClock(-HOUR_MS);
      await scene.queue.scheduleTend(scene.id, scene.generation, await nowOf(scene));
      await pass(scene, 62_000);
      expect((await inspectQueue(scene)).workers).toEqual({});
    },
    without: [{ script: 'tick', cure: 'a sign of life that lies ahead counts as now' }],
  },

  'after the clock went back, a queue is paused for no longer than it was asked for': {
    async play() {
      const scene = await given.opened();
      const control = new QueueControlCommands(scene.connection, scene.queue.keys.queue);
      await control.pause(60_000);
      moveClock(-HOUR_MS);
      const { pausedUntil, now } = await scene.queue.tick('', '');
      expect(pausedUntil - now).toBe(60_000);
    },
    without: [
      {
        script: 'tick',
        cure: 'the pause of a queue is not believed beyond its length',
        change: 'never',
      },
    ],
  },

  'after the clock went back, a pause that is asked for again lasts as long as it says': {
    async play() {
      const scene = await given.opened();
      const control = new QueueControlCommands(scene.connection, scene.queue.keys.queue);
      await control.pause(60_000);
      moveClock(-HOUR_MS);
      await control.pause(90_000);
      moveClock(90_001);
      expect((await scene.queue.tick('', '')).pausedUntil).toBe(-1);
    },
    without: [
      {
        script: 'pause-queue',
        cure: 'the pause of a queue is not believed beyond its length',
        change: 'never',
      },
      { script: 'pause-queue', cure: 'a pause that is asked for again' },
    ],
  },

  'more than a thousand submissions a second do not make generations run ahead of the clock': {
    async play() {
      const scene = await given.nothing();
      let last = 0;
      for (let round = 0; round < 8; round += 1) {
        const ids = Array.from({ length: 1_000 }, () => freshName('burst'));
        last = Math.max(last, ...(await Promise.all(ids.map((id) => scene.queue.intent(id)))));
      }
      expect(last - (await nowOf(scene))).toBeLessThan(2_000);
    },
    without: [
      {
        script: 'intent',
        cure: 'generations stay near the clock',
        change: { becomes: 'last + 1' },
      },
    ],
  },

  'the next generation of an id has a greater number, also when many ids share one': {
    async play() {
      const scene = await given.opened();
      // Ahead of the clock as far as it may be.
      await scene.queue.reopen(freshName('other'), scene.generation + HOUR_MS);
      const id = freshName('again');
      const first = await scene.queue.intent(id);
      await scene.queue.finish(id, first, 'succeeded');
      expect(await scene.queue.intent(id)).toBeGreaterThan(first);
    },
    without: [{ script: 'finish', cure: 'the end of a generation makes the next one greater' }],
  },

  'an id that a rolled-back queue has open under an ended generation is opened anew': {
    async play() {
      const scene = await given.created();
      await scene.request.drop();
      const above = (await create(scene)) as { above?: number };
      const next = await scene.queue.intent(scene.id, above.above);
      expect(await create({ ...scene, generation: next })).toMatchObject({ verdict: 'created' });
      await append({ ...scene, generation: next }, 1);
    },
    without: [{ script: 'intent', cure: 'an open generation that has ended is replaced' }],
  },
};

playTraces('a cure of what a clock that steps does', traces);
