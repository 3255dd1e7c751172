import { ControlCommands, QueueControlCommands } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  back,
  failure,
  given,
  Hand,
  holds,
  LEASE_MS,
  type Options,
  PRODUCER,
  popAll,
  type Scene,
  success,
  tickOnce,
} from '../support/given.js';
import { inspect } from '../support/peek.js';
import { playTraces, type Trace } from '../support/trace.js';

/*
 * Short histories of what is done to a request while it runs, by an operator, by its handlers and by
 * the clock, each for one cure of the scripts.
 */

useTestClock();

const control = ({ connection, id }: Scene) => new ControlCommands(connection, id);
const queueControl = ({ connection, queue }: Scene) =>
  new QueueControlCommands(connection, queue.keys.queue);

/** Sealed; a worker holds `n` of its sub-requests. */
async function running(n: number, options: Options = {}) {
  const scene = await given.sealed({ items: 6, limit: 3, ...options });
  const hand = new Hand(scene);
  const entries = await hand.hold(n);
  return { scene, hand, entries };
}

const halted = (script: 'enter' | 'tend' | 'settle') =>
  ({ script, from: 'if not active or state.halted or', to: 'if not active or' }) as const;

const traces: Record<string, Trace> = {
  paused: {
    says: 'of a paused request nothing is granted, minted, handed out or kept beyond what runs',
    async play() {
      const { scene, hand, entries } = await running(3);
      await popAll(scene);
      await control(scene).pause(scene.generation);
      expect(await hand.settle([back(entries[0]!)], { running: 2 })).toMatchObject({
        permits: 2,
        mint: 0,
      });
      expect(await hand.take(1)).toEqual([]);
      const other = new Hand(scene, 'other');
      expect(await other.enter(1)).toMatchObject({ permits: 0 });
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({ mint: 0 });
    },
    without: [
      halted('enter'),
      halted('tend'),
      halted('settle'),
      { script: 'settle', from: 'if state.halted or state.status', to: 'if state.status' },
      { script: 'take', from: 'if state.halted or state.status', to: 'if state.status' },
    ],
  },

  'top-up, resume': {
    says: 'a resumed request has its tokens at once',
    async play() {
      const { scene, hand, entries } = await running(1);
      await control(scene).pause(scene.generation);
      await hand.settle([success(entries[0]!)], { keep: 0 });
      await popAll(scene);
      await new Hand(scene, 'other').enter(1);
      expect(await inspect(scene)).toMatchObject({ out: 0, granted: 0 });
      expect(await control(scene).resume(scene.generation)).toMatchObject({ mint: 1 });
    },
    without: [
      { script: 'resume', from: 'local mint = topUp(', to: 'local mint = 0 * topUp(' },
      {
        script: 'resume',
        from: "redis.call('HDEL', request, 'paused')\nstate = readState(request, generation)",
        to: "redis.call('HDEL', request, 'paused')",
      },
    ],
  },

  'resumed, still held': {
    says: 'a request that is also held back goes on when that is over, not with its resume',
    async play() {
      const scene = await given.created();
      await holds(scene).hold(scene.generation, 60_000);
      await control(scene).pause(scene.generation);
      await scene.request.append(scene.generation, PRODUCER, 0, ['a', 'b']);
      expect(await control(scene).resume(scene.generation)).toMatchObject({ mint: 0 });
      expect((await inspect(scene)).out).toBe(0);
    },
    without: [
      {
        script: 'resume',
        from: "redis.call('HDEL', request, 'paused')\nstate = readState(request, generation)",
        to: "redis.call('HDEL', request, 'paused')\nstate.halted = false",
      },
    ],
  },

  'top-up, update': {
    says: 'a raised limit brings others at once',
    async play() {
      const { scene } = await running(2, { limit: 2 });
      await popAll(scene);
      const updated = await control(scene).update(scene.generation, { limit: 4 });
      expect(updated).toMatchObject({ mint: 2 });
    },
    without: [{ script: 'update', from: 'local mint = topUp(', to: 'local mint = 0 * topUp(' }],
  },

  'lowered limit': {
    says: 'a worker above a lowered limit gives a permit back with each handler that ends',
    async play() {
      const { scene, hand, entries } = await running(3);
      await control(scene).update(scene.generation, { limit: 1 });
      for (const left of [2, 1]) {
        const settled = await hand.settle([success(entries[left]!)], { keep: 3, running: left });
        expect(settled).toMatchObject({ permits: left, mint: 0 });
      }
      await inspect(scene);
    },
    without: [
      { script: 'settle', from: 'math.max(running, permits - excess)', to: 'permits' },
      { script: 'update', from: "redis.call('HSET', request, 'limit', limit)", to: '' },
    ],
  },

  'changed priority': {
    says: 'tokens in the list of an old priority are good for nothing, and there are new ones at once',
    async play() {
      const scene = await given.sealed({ items: 5, limit: 2, priority: 90 });
      const { generation } = scene;
      const updated = await control(scene).update(generation, { priority: 3 });
      expect(updated).toMatchObject({ mint: 1, priority: 3 });
      const { epoch } = updated as { epoch: number };
      const old = await new Hand(scene, 'old').enter(1, [1]);
      expect(old).toMatchObject({ permits: 0, mint: 0 });
      expect(await inspect(scene)).toMatchObject({ out: 1, granted: 0 });
      expect(await new Hand(scene).enter(1, [epoch])).toMatchObject({ permits: 1 });
    },
    without: [
      { script: 'update', from: 'state.epoch + 2, 0, 0', to: 'state.epoch + 1, 0, 0' },
      { script: 'update', from: 'state.epoch + 2, 0, 0', to: 'state.epoch + 2, state.out, 0' },
      { script: 'enter', from: 'local grant = stale and 0 or', to: 'local grant =' },
    ],
  },

  'changed priority, once': {
    says: 'a change of the priority that is sent twice makes one step',
    async play() {
      const scene = await given.sealed({ items: 5, limit: 2, priority: 90 });
      await control(scene).update(scene.generation, { priority: 3 });
      const again = await control(scene).update(scene.generation, { priority: 3 });
      expect(again).toMatchObject({ mint: 0, epoch: 3 });
    },
    without: [{ script: 'update', from: ' and priority ~= known then', to: ' then' }],
  },

  'longest hold': {
    says: 'a hold, or a pause of the queue, is not made shorter by another one',
    async play() {
      const scene = await given.sealed({ items: 1 });
      const long = await holds(scene).hold(scene.generation, 60_000);
      expect(await holds(scene).hold(scene.generation, 1_000)).toEqual(long);
      const pause = await queueControl(scene).pause(60_000);
      expect((await queueControl(scene).pause(1_000)).until).toBe(pause.until);
      await queueControl(scene).pause(0);
      expect((await queueControl(scene).pause(1_000)).until).toBe(0);
      expect((await scene.queue.tick('', '')).pausedUntil).toBe(0);
      await queueControl(scene).resume();
      expect((await scene.queue.tick('', '')).pausedUntil).toBe(-1);
    },
    without: [
      {
        script: 'hold',
        from: 'math.max(known, state.at + holdMs)',
        to: 'state.at + holdMs',
      },
      { script: 'pause-queue', from: 'math.max(at + forMs, known)', to: 'at + forMs' },
      { script: 'pause-queue', from: 'if forMs == 0 or known == 0 then', to: 'if forMs == 0 then' },
      { script: 'resume-queue', from: "redis.call('UNLINK', paused)", to: '' },
    ],
  },

  'hold, over': {
    says: 'a request that was held back is looked at when that is over, though nobody noted it',
    async play() {
      const { scene, hand, entries } = await running(2);
      await holds(scene).hold(scene.generation, 40_000);
      await hand.settle(entries.map(back), { keep: 0 });
      await popAll(scene);
      await new Hand(scene, 'other').enter(1);
      moveClock(21_000);
      await tickOnce(scene);
      moveClock(19_100);
      await tickOnce(scene);
      expect(await popAll(scene)).toHaveLength(1);
    },
    without: [
      { script: 'tend', from: 'next = math.min(next, state.heldUntil)', to: '' },
      {
        script: 'hold',
        from: "redis.call('HSET', request, 'heldUntil', heldUntil)",
        to: '',
      },
    ],
  },

  deadline: {
    says: 'a request ends at its deadline: failed, whatever is left, and nobody has to note it',
    async play() {
      const { scene, hand, entries } = await running(1, { deadlineMs: 30_000 });
      moveClock(21_000);
      await hand.renew();
      await tickOnce(scene);
      moveClock(9_100);
      expect(await tickOnce(scene)).toBe(1);
      expect((await inspect(scene)).counts).toMatchObject({ cancelled: 5, inFlight: 1 });
      expect(await hand.trySettle([success(entries[0]!)])).toMatchObject({ outcome: 'failed' });
    },
    without: [
      { script: 'tend', from: 'next = math.min(next, deadline)', to: '' },
      { script: 'tend', from: "endEarly(request, state, 'deadline')", to: '' },
      {
        script: 'settle',
        from: "if v[4] == 'deadline' or v[4] == 'failures' then",
        to: 'if false then',
      },
      { script: 'create', from: "or ARGV[i] == 'deadlineMs' and 'deadline'", to: '' },
    ],
  },

  'first reason': {
    says: 'why a request ended early is what ended it first',
    async play() {
      const { scene, hand, entries } = await running(1, { deadlineMs: 9_000 });
      moveClock(9_100);
      await scene.request.tend(scene.generation, '');
      await scene.request.cancel(scene.generation);
      expect(await hand.trySettle([success(entries[0]!)])).toMatchObject({ outcome: 'failed' });
      expect(await scene.request.state()).toMatchObject({ endReason: 'deadline' });
    },
    without: [
      {
        script: 'cancel',
        from: "redis.call('HSETNX', request, 'endReason', reason)",
        to: "redis.call('HSET', request, 'endReason', reason)",
      },
    ],
  },

  'too many failures': {
    says: 'a request that failed too often ends there, with all that waits, also what is parked',
    async play() {
      const options = { toleratedFailures: 1, onExceeded: 'cancel' } as const;
      const { scene, hand, entries } = await running(3, options);
      const [first, second, third] = entries;
      await hand.settle([failure(first!), back(second!)], { keep: 1, running: 1 });
      expect((await inspect(scene)).status).toBe('sealed');
      expect(await hand.trySettle([failure(third!)], { keep: 0 })).toEqual({
        verdict: 'complete',
        outcome: 'failed',
      });
      expect((await inspect(scene)).counts).toMatchObject({ failed: 2, cancelled: 4 });
    },
    without: [
      { script: 'settle', from: "endEarly(request, state, 'failures')", to: '' },
      {
        script: 'settle',
        from: 'keys.held = cancelIdle(request, state, work, due, at, keys.held)',
        to: '',
      },
    ],
  },

  'too many crashes': {
    says: 'and a crash that is one too many ends it as well',
    async play() {
      const options = { maxCrashes: 1, onExceeded: 'cancel' } as const;
      const { scene } = await running(1, options);
      moveClock(LEASE_MS + 1);
      const tended = await scene.request.tend(scene.generation, '');
      expect(tended).toEqual({
        verdict: 'complete',
        outcome: 'failed',
        crashed: { count: 1, indexes: [0] },
      });
    },
    without: [
      {
        script: 'tend',
        from: '\nendIfExceeded(request, state)\nlocal left = 0',
        to: '\nlocal left = 0',
      },
    ],
  },

  'share of all': {
    says: 'a share of failures is one of all sub-requests, so it says nothing before they are all there',
    async play() {
      const options = { toleratedFailures: '50%', onExceeded: 'cancel' } as const;
      const scene = await given.filled({ items: 1, ...options });
      const hand = new Hand(scene);
      const [only] = await hand.hold(1);
      await hand.settle([failure(only!)], { keep: 0 });
      expect((await inspect(scene)).status).toBe('open');
    },
    without: [
      { script: 'settle', from: "(state.status == 'open' and v[2]:sub(-1) == '%')", to: 'false' },
    ],
  },

  'no further attempt': {
    says: 'what cannot be tried again fails at once, whatever attempts are left',
    async play() {
      const { scene, hand, entries } = await running(1, { attempts: 5 });
      await hand.settle([failure(entries[0]!, -1)], { keep: 0 });
      expect((await inspect(scene)).counts).toMatchObject({ failed: 1, delayed: 0 });
    },
    without: [{ script: 'settle', from: ' and delayMs >= 0 then', to: ' then' }],
  },

  'checkpoint, of its owner': {
    says: 'a worker that lost a sub-request does not overwrite how far its new owner has come',
    async play() {
      const { scene, hand, entries } = await running(2);
      await hand.settle([back(entries[0]!)], { keep: 1, running: 1 });
      const next = new Hand(scene, 'next');
      await next.enter(1);
      await next.take(1);
      const { request, generation, connection } = scene;
      await request.renew(generation, 'next', LEASE_MS, ['0:checkpoint', '"new"']);
      await request.renew(generation, 'worker', LEASE_MS, ['0:checkpoint', '"old"']);
      expect(await connection.client.hget(request.keys.tries, '0:checkpoint')).toBe('"new"');
    },
    without: [
      {
        script: 'renew',
        from: "if redis.call('XPENDING', work, 'workers', id, id, 1, worker)[1] then",
        to: 'if true then',
      },
    ],
  },

  'checkpoint, taken out': {
    says: 'what a sub-request left goes when it succeeds, or memory would fill as a request runs',
    async play() {
      const { scene, hand, entries } = await running(2);
      const { request, generation, connection } = scene;
      await request.renew(generation, 'worker', LEASE_MS, ['0:checkpoint', '1']);
      await hand.settle([success(entries[0]!)], { keep: 1, running: 1 });
      expect(await connection.client.exists(request.keys.tries)).toBe(0);
    },
    without: [
      { script: 'renew', from: "redis.call('HSET', request, 'checkpoints', 1)", to: '' },
      {
        script: 'settle',
        from: "keys.tried[#keys.tried + 1] = ARGV[i]:sub(#prefix + 1) .. ':checkpoint'",
        to: '',
      },
    ],
  },
};

playTraces('cures of what is done while it runs', traces);
