import { QueueControlCommands } from '@piecework/protocol';
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
import { inspect, inspectQueue } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * The server's clock steps, as by hand, by ntpd, or by a failover to a server whose clock is behind; or all stood
 * still, which is a step forward to who wakes up. No stored time is believed beyond now and the wait that was meant.
 */

useTestClock();

const HOUR_MS = 3_600_000;

/** Time goes by, and somebody looks at the agenda every second or so. */
async function pass(scene: Scene, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    moveClock(Math.min(left, 1_000));
    await tickOnce(scene);
  }
}

/** A worker holds a sub-request and dies; the agenda was looked at. */
async function deadWorker(): Promise<Scene> {
  const scene = await given.sealed({ items: 1, limit: 1 });
  await new Hand(scene, 'dead').hold(1);
  await tickOnce(scene);
  return scene;
}

const permitsOf = async (scene: Scene) => (await inspect(scene)).permits;
/** Server time, by the scripts' clock. */
const nowOf = async (scene: Scene) => (await scene.queue.tick('', '')).now;

const traces: Record<string, Trace> = {
  'back, a lease': {
    says: 'after the clock went back by an hour, what a dead worker held is withdrawn within its lease',
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
        from: 'leaseEnds(request, field, notBeyond(request, field, written, at, term), term, at, grace)',
        to: 'leaseEnds(request, field, written, term, at, grace)',
      },
      { script: 'tick', from: 'clockWentBack(counters, seenAt - at, at)', to: '' },
    ],
  },

  'back, an agenda': {
    says: 'after the clock went back, a page of the agenda after the other is shifted, and each id once',
    async play() {
      const scene = await given.opened();
      const ids = Array.from({ length: 2_500 }, () => freshName('later'));
      const generations = await Promise.all(ids.map((id) => scene.queue.intent(id)));
      const { client } = scene.connection;
      const { agenda } = scene.queue.keys;
      const far = (await nowOf(scene)) + 2 * HOUR_MS;
      await client.zadd(agenda, ...ids.flatMap((id, i) => [far + i, id]));
      moveClock(-HOUR_MS);
      for (let look = 0; look < 4; look += 1) await scene.queue.tick('', '');
      const scores = await client.zmscore(agenda, ...ids);
      const shifted = scores.map((score, i) => far + i - Number(score));
      expect(Math.max(...shifted)).toBeLessThan(HOUR_MS + 10_000);
      expect(Math.min(...shifted)).toBeGreaterThan(HOUR_MS - 10_000);
      expect(generations).toHaveLength(2_500);
    },
    without: [
      { script: 'tick', from: 'if #page == 2000 then', to: 'if false then' },
      {
        script: 'tick',
        from: "redis.call('HSET', counters, 'shiftFrom', page[2000])",
        to: '',
      },
    ],
  },

  'forward and back': {
    says: 'an hour forward for a moment, and right again, is no grace for an hour',
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
        from: 'math.min(known, at)',
        to: 'known',
      },
    ],
  },

  'another clock': {
    says: 'an outage is told apart from the clock of the server that tells of it',
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
      {
        script: 'tend',
        from: 'return at - math.max(0, tickedAt - time)',
        to: 'return time',
      },
    ],
  },

  'late looks, back': {
    says: 'a late look of a clock that went back since puts no withdrawal off',
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
    without: [{ script: 'tend', from: 'lateTick - tickedAt > 4 * awayMs', to: 'false' }],
  },

  'producer, an outage': {
    says: 'a producer has the whole of its lease again when Redis is back, and not more',
    async play() {
      const scene = await given.created({ producerLeaseMs: 30_000, onProducerLost: 'cancel' });
      await tickOnce(scene);
      moveClock(45_000);
      await pass(scene, 20_000);
      expect((await inspect(scene)).status).toBe('open');
      expect((await scene.request.keepOpen(scene.generation)).verdict).toBe('ok');
      await pass(scene, 32_000);
      expect((await inspect(scene)).status).toBe('complete');
    },
    without: [
      {
        script: 'tend',
        from: "producerUntil = leaseEnds(request, 'producerUntil', producerUntil, leaseMs, at, grace)",
        to: '',
      },
    ],
  },

  'producer, a late look': {
    says: 'a look that was under way while Redis was away gives up no producer',
    async play() {
      const scene = await given.created({ producerLeaseMs: 30_000, onProducerLost: 'cancel' });
      moveClock(21_000);
      const { claims, now, resumedAt } = await scene.queue.tick('', '');
      moveClock(40_000);
      const { generation, passed } = claims[0]!;
      await scene.request.tend(generation, passed, resumedAt, 15_000, now);
      expect((await inspect(scene)).status).toBe('open');
      await tickOnce(scene);
      expect((await scene.request.keepOpen(scene.generation)).verdict).toBe('ok');
    },
    without: [
      {
        script: 'tend',
        from: "(state.granted > 0 or state.status == 'open')",
        to: 'state.granted > 0',
      },
    ],
  },

  'a short lease, a jump': {
    says: 'a jump of the clock that is longer than a short lease ends it no sooner than its length after',
    async play() {
      const scene = await given.created({ producerLeaseMs: 4_000, onProducerLost: 'cancel' });
      await tickOnce(scene);
      moveClock(10_000);
      await pass(scene, 3_000);
      expect((await scene.request.keepOpen(scene.generation)).verdict).toBe('ok');
      moveClock(10_000);
      await pass(scene, 3_000);
      expect((await scene.request.keepOpen(scene.generation)).verdict).toBe('ok');
    },
    without: [{ script: 'tend', from: 'grace.gapMs <= term', to: 'true' }],
  },

  'a short lease, slow looks': {
    says: 'looks that come more seldom than a lease lasts prolong it once, and not for ever',
    async play() {
      const scene = await given.created({ producerLeaseMs: 4_000, onProducerLost: 'cancel' });
      for (let look = 0; look < 4; look += 1) {
        moveClock(5_000);
        const at = await nowOf(scene);
        const gap = { gapAt: at, gapMs: 5_000 };
        await scene.request.tend(scene.generation, '', 0, 15_000, at, gap);
        if (look === 0) expect((await inspect(scene)).status).toBe('open');
      }
      expect((await inspect(scene)).status).toBe('complete');
    },
    without: [{ script: 'tend', from: ' or written % 1 > 0', to: '' }],
  },

  'back, a producer': {
    says: 'after the clock went back, a producer that is gone is given up within its lease',
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
        from: "notBeyond(request, 'producerUntil', tonumber(v[1]), at, leaseMs)",
        to: 'tonumber(v[1])',
      },
    ],
  },

  'back, a delay': {
    says: 'after the clock went back, a request that was delayed waits no longer than its delay',
    async play() {
      const scene = await given.sealed({ items: 1, delayMs: 10_000 });
      await tickOnce(scene);
      await scene.queue.note(scene.id, scene.generation, (await nowOf(scene)) + 10_000);
      moveClock(-HOUR_MS);
      await pass(scene, 25_000);
      expect(await inspect(scene)).toMatchObject({ out: 1 });
    },
    without: [
      {
        script: 'tend',
        from: 'endsHold(request, state.heldUntil, v[10], at)',
        to: 'state.heldUntil',
      },
      {
        script: 'create',
        from: "fields[#fields + 1] = 'heldFor'",
        to: "fields[#fields + 1] = 'none'",
      },
    ],
  },

  'back, an opened id': {
    says: 'an id that was opened while the clock was ahead is looked at in time, also before the first tick',
    async play() {
      const scene = await given.sealed({ items: 1 });
      await popAll(scene);
      moveClock(-HOUR_MS);
      await pass(scene, 60_000);
      expect((await inspect(scene)).epoch).toBeGreaterThan(1);
    },
    without: [
      {
        script: 'intent',
        from: "generation, 'openedAt', math.max(at, tonumber(v[2]) or 0))",
        to: 'generation)',
      },
      { script: 'tick', from: 'math.max(tickedAt, tonumber(v[5]) or 0)', to: 'tickedAt' },
    ],
  },

  'back, no delay': {
    says: 'after the clock went back, what is to be tried again at once is',
    async play() {
      const scene = await given.sealed({ items: 1, limit: 1, attempts: 2 });
      const hand = new Hand(scene, 'w');
      const [entry] = await hand.hold(1);
      await hand.settle([failure(entry!, 0)]);
      // No look at the request before the clock goes back, only at the agenda.
      await tickOnce(scene);
      moveClock(-HOUR_MS);
      await pass(scene, 60_000);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 1, delayed: 0 });
    },
    without: [
      {
        script: 'settle',
        from: "tonumber(redis.call('HGET', keys.request, 'longestDelayMs')) or -1",
        to: "tonumber(redis.call('HGET', keys.request, 'longestDelayMs')) or 0",
      },
      {
        script: 'tend',
        from: 'tonumber(v[11]) or tonumber(v[13]) or 0',
        to: 'tonumber(v[11]) or 0',
      },
    ],
  },

  'back, a refused create': {
    says: 'a create that was refused as too old is refused when the clock went back, too',
    async play() {
      const scene = await given.nothing();
      const generation = await scene.queue.intent(scene.id);
      moveClock(HOUR_MS);
      const late = { ...scene, generation };
      await expect(create(late, { owner: 'one' })).resolves.toMatchObject({ verdict: 'void' });
      moveClock(-HOUR_MS);
      await expect(create(late, { owner: 'other' })).resolves.toMatchObject({ verdict: 'void' });
    },
    without: [
      {
        script: 'create',
        from: "redis.call('HSET', request, 'generation', generation, 'status', 'void')\n",
        to: '',
      },
    ],
  },

  'back, a hold': {
    says: 'after the clock went back, a hold lasts no longer than it was asked for',
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
    without: [
      {
        script: 'hold',
        from: "redis.call('HSET', request, 'heldFor', heldUntil .. ' ' .. holdMs)",
        to: '',
      },
    ],
  },

  'back, a deadline': {
    says: 'after the clock went back, a deadline is no further away than it was when it was set',
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
        from: "notBeyond(request, 'deadline', tonumber(v[7]) or math.huge, at, v[9])",
        to: 'tonumber(v[7]) or math.huge',
      },
    ],
  },

  'back, a retry': {
    says: 'after the clock went back, a retry waits no longer than the longest delay that was asked for',
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
      { script: 'tend', from: 'delaysWentBack(due, at, tonumber(v[12]))', to: '' },
      {
        script: 'settle',
        from: "redis.call('HSET', keys.request, 'longestDelayMs', delayMs)",
        to: '',
      },
    ],
  },

  'back, a lost token': {
    says: 'after the clock went back, a token that was popped and lost is found as soon as ever',
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
    without: [
      { script: 'tick', from: 'if epoch and tonumber(passedAt) > at then', to: 'if false then' },
    ],
  },

  'back, signs of life': {
    says: 'after the clock went back, a worker that is gone is struck out of the registry in time',
    async play() {
      const scene = await given.opened();
      await scene.queue.tick('gone', '{}');
      moveClock(-HOUR_MS);
      await pass(scene, 62_000);
      expect((await inspectQueue(scene)).workers).toEqual({});
    },
    without: [{ script: 'tick', from: 'signsOfLife(workers, at)\nif worker', to: 'if worker' }],
  },

  'back, a pause': {
    says: 'after the clock went back, a queue is paused for no longer than it was asked for',
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
        from: 'if tonumber(of) == ends and ends > at + ms then',
        to: 'if false then',
      },
    ],
  },

  'back, a longer pause': {
    says: 'after the clock went back, a pause that is asked for again lasts as long as it says',
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
        from: 'if tonumber(of) == ends and ends > at + ms then',
        to: 'if false then',
      },
      {
        script: 'pause-queue',
        from: "redis.call('HSET', paused, 'length', ends .. ' ' .. forMs)",
        to: '',
      },
    ],
  },

  'lives and the clock': {
    says: 'more than a thousand submissions a second do not make generations run ahead of the clock',
    async play() {
      const scene = await given.nothing();
      let last = 0;
      for (let round = 0; round < 8; round += 1) {
        const ids = Array.from({ length: 1_000 }, () => freshName('burst'));
        last = Math.max(last, ...(await Promise.all(ids.map((id) => scene.queue.intent(id)))));
      }
      expect(last - (await nowOf(scene))).toBeLessThan(2_000);
    },
    without: [{ script: 'intent', from: 'last - at < 1000 and last + 1 or last', to: 'last + 1' }],
  },

  'the next life': {
    says: 'the next life of an id has a greater generation, also where many share one',
    async play() {
      const scene = await given.opened();
      // Ahead of the clock as far as it may be.
      await scene.queue.reopen(freshName('other'), scene.generation + HOUR_MS);
      const id = freshName('again');
      const first = await scene.queue.intent(id);
      await scene.queue.finish(id, first, 'succeeded');
      expect(await scene.queue.intent(id)).toBeGreaterThan(first);
    },
    without: [
      {
        script: 'finish',
        from: "redis.call('HSET', counters, 'generation', generation + 1)",
        to: '',
      },
    ],
  },

  'an open life that is over': {
    says: 'what a rolled-back queue has open under a life that is over is replaced',
    async play() {
      const scene = await given.created();
      await scene.request.drop();
      const above = (await create(scene)) as { above?: number };
      const next = await scene.queue.intent(scene.id, above.above);
      expect(await create({ ...scene, generation: next })).toMatchObject({ verdict: 'created' });
      await append({ ...scene, generation: next }, 1);
    },
    without: [{ script: 'intent', from: ' or generation <= above', to: '' }],
  },
};

playTraces('a cure of what a clock that steps does', traces);
