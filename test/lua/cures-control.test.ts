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
  ({ script, cure: 'a paused request grants, mints and hands out nothing' }) as const;

const traces: Record<string, Trace> = {
  'a paused request grants, mints and hands out nothing, and keeps no permits but of running handlers':
    {
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
        { script: 'settle', cure: 'a paused request grants, mints and hands out nothing, 2' },
        { script: 'take', cure: 'a paused request grants, mints and hands out nothing, 3' },
      ],
    },

  'a resumed request has its tokens at once': {
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
      { script: 'update', cure: 'top-up in update', change: { becomes: '0' } },
      { script: 'update', cure: 'top-up in resume' },
    ],
  },

  'a resume does not end a hold': {
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
        script: 'update',
        cure: 'top-up in resume',
        change: { becomes: "paused == '1'" },
      },
    ],
  },

  'a raised limit brings others at once': {
    async play() {
      const { scene } = await running(2, { limit: 2 });
      await popAll(scene);
      const updated = await control(scene).update(scene.generation, { limit: 4 });
      expect(updated).toMatchObject({ mint: 2 });
    },
    without: [{ script: 'update', cure: 'top-up in update', change: { becomes: '0' } }],
  },

  'a worker above a lowered limit gives up a permit with each handler that ends': {
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
      {
        script: 'settle',
        cure: 'permits above a lowered limit are taken back',
        change: { becomes: 'math.min(keep, permits)' },
      },
      { script: 'update', cure: 'permits above a lowered limit are taken back, 2' },
    ],
  },

  'tokens in the list of an old priority are void, and there are new ones at once': {
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
      { script: 'update', cure: 'tokens of an old priority die', change: { becomes: '1' } },
      {
        script: 'update',
        cure: 'tokens of an old priority die, 2',
        change: { becomes: 'state.out' },
      },
      { script: 'enter', cure: 'tokens of an old priority die, 3' },
    ],
  },

  'a change of the priority that is sent twice makes one step': {
    async play() {
      const scene = await given.sealed({ items: 5, limit: 2, priority: 90 });
      await control(scene).update(scene.generation, { priority: 3 });
      const again = await control(scene).update(scene.generation, { priority: 3 });
      expect(again).toMatchObject({ mint: 0, epoch: 3 });
    },
    without: [{ script: 'update', cure: 'a change of the priority is made once' }],
  },

  'a second hold, or a second pause of the queue, does not shorten the first': {
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
        cure: 'a hold is never made shorter',
        change: { becomes: 'state.at + holdMs' },
      },
      {
        script: 'pause-queue',
        cure: 'a hold is never made shorter, 2',
        change: { becomes: 'at + forMs' },
      },
      { script: 'pause-queue', cure: 'a hold is never made shorter, 3' },
      { script: 'resume-queue', cure: 'a hold is never made shorter, 4' },
    ],
  },

  'a held request is tended when the hold ends, also when no call scheduled that': {
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
      { script: 'tend', cure: 'the end of a hold is on the agenda' },
      { script: 'hold', cure: 'the end of a hold is on the agenda, 2' },
    ],
  },

  'a request fails at its deadline, whatever is left, also when no call scheduled that': {
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
      { script: 'tend', cure: 'the deadline is on the agenda' },
      { script: 'tend', cure: 'the deadline is on the agenda, 2' },
      { script: 'settle', cure: 'the deadline is on the agenda, 3', change: 'never' },
      { script: 'create', cure: 'the deadline is on the agenda, 4', change: 'never' },
    ],
  },

  'the first reason to end a request early is kept': {
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
        cure: 'the first reason of an early end stays',
        change: { becomes: "'HSET'" },
      },
    ],
  },

  'a request with too many failures ends at once, with all that waits or was returned': {
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
      { script: 'settle', cure: 'too many failures end it in settle' },
      { script: 'settle', cure: 'too many failures end it in settle, 2' },
    ],
  },

  'one crash too many ends such a request as well': {
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
    without: [{ script: 'tend', cure: 'too many failures end it in tend' }],
  },

  'a tolerated share of failures is judged only when all sub-requests are there': {
    async play() {
      const options = { toleratedFailures: '50%', onExceeded: 'cancel' } as const;
      const scene = await given.filled({ items: 1, ...options });
      const hand = new Hand(scene);
      const [only] = await hand.hold(1);
      await hand.settle([failure(only!)], { keep: 0 });
      expect((await inspect(scene)).status).toBe('open');
    },
    without: [
      { script: 'settle', cure: 'a share of failures waits for the seal', change: 'never' },
    ],
  },

  'a failure that must not be tried again is final, whatever attempts are left': {
    async play() {
      const { scene, hand, entries } = await running(1, { attempts: 5 });
      await hand.settle([failure(entries[0]!, -1)], { keep: 0 });
      expect((await inspect(scene)).counts).toMatchObject({ failed: 1, delayed: 0 });
    },
    without: [{ script: 'settle', cure: 'no further attempt when there is to be none' }],
  },

  'a worker that lost a sub-request does not overwrite the checkpoint of the new owner': {
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
      { script: 'renew', cure: 'a checkpoint counts from its owner only', change: 'always' },
    ],
  },

  'the checkpoint of a sub-request is removed when it succeeds': {
    async play() {
      const { scene, hand, entries } = await running(2);
      const { request, generation, connection } = scene;
      await request.renew(generation, 'worker', LEASE_MS, ['0:checkpoint', '1']);
      await hand.settle([success(entries[0]!)], { keep: 1, running: 1 });
      expect(await connection.client.exists(request.keys.tries)).toBe(0);
    },
    without: [
      { script: 'renew', cure: 'a checkpoint goes with its success' },
      { script: 'settle', cure: 'a checkpoint goes with its success, 2' },
    ],
  },
};

playTraces('cures of what is done while it runs', traces);
