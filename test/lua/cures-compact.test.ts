/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import { ControlCommands, type Entry, ReaderCommands } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { back, failure, given, Hand, LEASE_MS, type Scene, success } from '../support/given.js';
import { inspect, peek } from '../support/peek.js';
import { openedAgain } from '../support/redriven.js';
import { answerOf, playTraces, type Trace } from '../support/trace.js';
import { compact, isCompact, submitWhole } from '../support/whole.js';

/*
 * Histories of compact requests: state and sub-requests are one string until something happens to them other than
 * that one worker reads and settles all (lua/lib/compact.lua). Each is for one cure.
 */

useTestClock();

/** What a worker that has read all of it holds. */
interface Held {
  readonly scene: Scene;
  readonly hand: Hand;
  readonly entries: readonly Entry[];
}

async function held(options: Parameters<typeof compact>[0] = {}): Promise<Held> {
  const scene = await compact(options);
  const hand = new Hand(scene);
  const entries = await hand.holdAtOnce(3);
  expect(entries.map(({ payload }) => payload)).toEqual(['item 0', 'item 1', 'item 2']);
  expect(await isCompact(scene)).toBe(true);
  return { scene, hand, entries };
}

const successes = (entries: readonly Pick<Entry, 'entry' | 'index'>[], value = '') =>
  entries.map((entry) => success(entry, value || `"${entry.index}"`));

/** Settles all at once, as a worker does, and gives its permits back. */
const settleAll = (
  { scene, hand, entries }: Pick<Held, 'scene' | 'hand' | 'entries'>,
  { worker = hand.name, value = '' } = {},
) => {
  hand.op += 1;
  const numbers = { op: hand.op, grantNo: hand.grantNo, keep: 0, running: 0, read: 0 };
  return scene.request
    .settle(scene.generation, worker, { ...numbers, leaseMs: LEASE_MS }, successes(entries, value))
    .then(({ settled }) => settled);
};

/** Settles outcomes of all three. */
const settle = ({ hand }: Held, outcomes: Parameters<Hand['trySettle']>[0]) =>
  hand.trySettle(outcomes, { keep: 0 });

const SUCCEEDED = { verdict: 'complete', outcome: 'succeeded' };

/** Enters with one token. */
const enter = (scene: Scene, { tasks = '*', epoch = 1 } = {}) =>
  new Hand(scene).tryEnter(3, [epoch], tasks, 3);

const traces: Record<string, Trace> = {
  'one worker reads and settles all, and it stays compact': {
    async play() {
      const one = await held();
      const { permits, pending, counts, leases } = await inspect(one.scene);
      expect({ permits, counts }).toMatchObject({
        permits: { worker: 3 },
        counts: { ready: 0, inFlight: 3 },
      });
      expect(pending).toHaveLength(3);
      expect(await one.scene.request.inspect()).toMatchObject({ ready: 0, inFlight: 3 });
      expect(leases).toHaveProperty('worker');
      expect(await settleAll(one)).toMatchObject(SUCCEEDED);
      expect(await isCompact(one.scene)).toBe(true);
      const over = await inspect(one.scene);
      expect(over).toMatchObject({ status: 'complete', outcome: 'succeeded', permits: {} });
      expect(over.results.map(({ value }) => value)).toEqual(['"0"', '"1"', '"2"']);
      expect(await settleAll(one)).toMatchObject(SUCCEEDED);
      expect((await peek(one.scene)).results).toHaveLength(3);
    },
    without: [
      { script: 'inspect', cure: 'what is compact may be with a worker', change: 'always' },
    ],
  },

  'several are entered and settled in one call, each for what it is': {
    async play() {
      const scenes = [await compact(), await given.sealed({ items: 1 }), await compact()];
      const hands = scenes.map((scene) => new Hand(scene));
      const entered = await Promise.all(hands.map((hand) => hand.enter(3, [1], 3)));
      const payloads = ['item 0', 'item 1', 'item 2'];
      const read = entered.map(({ entries }) => entries.map(({ payload }) => payload));
      expect(read).toEqual([payloads, ['item 0'], payloads]);
      expect(await Promise.all(scenes.map(isCompact))).toEqual([true, false, true]);
      const ends = hands.map((hand, i) =>
        hand.trySettle(successes(entered[i]?.entries ?? []), { keep: 0 }),
      );
      for (const end of await Promise.all(ends)) expect(end).toMatchObject(SUCCEEDED);
    },
    without: [],
  },

  'a second worker gets nothing of what the first has': {
    async play() {
      const { scene, hand } = await held();
      const other = await new Hand(scene, 'other').enter(3, [1], 3);
      expect(other).toMatchObject({ permits: 0, ready: 0, entries: [] });
      expect((await inspect(scene)).permits).toEqual({ [hand.name]: 3 });
    },
    without: [{ script: 'enter', cure: 'a compact request has one worker', change: 'never' }],
  },

  'a worker that does not serve its task leaves it to others': {
    async play() {
      const scene = await compact({ task: 'census' });
      const entered = await enter(scene, { tasks: ' other ' });
      expect(entered).toMatchObject({ verdict: 'unserved', task: 'census' });
      const served = await compact({ task: 'census' });
      expect(await enter(served, { tasks: ' census ' })).toMatchObject({ permits: 3 });
      expect(await isCompact(served)).toBe(true);
    },
    without: [
      {
        script: 'enter',
        cure: 'a compact request is for workers that serve its task',
        change: 'never',
      },
    ],
  },

  'a token that was given up brings no permits': {
    async play() {
      const scene = await compact();
      // Its token is lost twice: the epoch is 3.
      for (let lost = 0; lost < 2; lost += 1) {
        const tended = await scene.request.tend(scene.generation, lost === 0 ? '' : '1');
        expect(tended).toMatchObject({ verdict: 'ok' });
      }
      await scene.request.tend(scene.generation, '');
      expect(await isCompact(scene)).toBe(true);
      expect((await inspect(scene)).epoch).toBe(3);
      expect(await enter(scene, { epoch: 1 })).toMatchObject({ verdict: 'ok', permits: 0 });
    },
    without: [
      {
        script: 'enter',
        cure: 'tokens of an old priority die, of a compact request',
        change: 'never',
      },
    ],
  },

  'who may read a part only gets no more than that': {
    async play() {
      const scene = await compact();
      const entries = await new Hand(scene).holdAtOnce(2);
      expect(entries.map(({ payload }) => payload)).toEqual(['item 0', 'item 1']);
      expect(await isCompact(scene)).toBe(false);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 1, inFlight: 2 });
    },
    without: [{ script: 'enter', cure: 'of a compact request all is read', change: 'never' }],
  },

  'another worker settles nothing of it': {
    async play() {
      const one = await held();
      expect(await settleAll(one, { worker: 'other' })).toMatchObject({ permits: 0 });
      expect((await inspect(one.scene)).counts).toMatchObject({ succeeded: 0, inFlight: 3 });
    },
    without: [
      {
        script: 'settle',
        cure: 'a compact request is settled by the worker that has it',
        change: 'never',
      },
    ],
  },

  'a part of it is settled as of any request': {
    async play() {
      const one = await held();
      const [first, second] = one.entries as [Entry, Entry];
      await one.hand.settle([success(first), success(second)], { running: 1, keep: 1 });
      expect(await isCompact(one.scene)).toBe(false);
      const { counts } = await inspect(one.scene);
      expect(counts).toMatchObject({ succeeded: 2, inFlight: 1 });
    },
    without: [
      {
        script: 'settle',
        cure: 'a compact request is settled as a whole',
        change: 'never',
      },
    ],
  },

  'what fails for good ends in it, with its error and its payload': {
    async play() {
      const one = await held();
      const [first, second, third] = one.entries as [Entry, Entry, Entry];
      expect(await settle(one, [success(first), success(third), failure(second)])).toMatchObject({
        verdict: 'complete',
        outcome: 'failed',
      });
      expect(await isCompact(one.scene)).toBe(true);
      const over = await inspect(one.scene);
      expect(over.counts).toMatchObject({ succeeded: 2, failed: 1 });
      expect(over.failed['1:payload']).toBe('item 1');
      const { connection, request } = one.scene;
      expect(await connection.client.pttl(request.keys.failed)).toBeGreaterThan(0);
    },
    without: [],
  },

  'what fails is tried again where it has attempts left': {
    async play() {
      const one = await held({ attempts: 2 });
      const [first, ...rest] = one.entries as [Entry, ...Entry[]];
      const settled = await settle(one, [...successes(rest), failure(first)]);
      expect(settled).toMatchObject({ verdict: 'ok', dueNow: 1 });
      const { counts } = await inspect(one.scene);
      expect(counts).toMatchObject({ succeeded: 2, failed: 0, ready: 1 });
    },
    without: [
      {
        script: 'settle',
        cure: 'who may try again is no end of a compact request',
        change: 'never',
      },
    ],
  },

  'what is given back is not the end of it': {
    async play() {
      const one = await held();
      const [first, ...rest] = one.entries as [Entry, ...Entry[]];
      expect(await settle(one, [...successes(rest), back(first)])).toMatchObject({ dueNow: 1 });
    },
    without: [],
  },

  'long results are not in it, and say how long they are': {
    async play() {
      const one = await held();
      expect(await settleAll(one, { value: `"${'x'.repeat(30_000)}"` })).toMatchObject(SUCCEEDED);
      expect(await isCompact(one.scene)).toBe(false);
      expect(Number((await peek(one.scene)).fields['longest'])).toBeGreaterThan(90_000);
    },
    without: [
      {
        script: 'settle',
        cure: 'a long record is not usual, of a compact request',
        change: 'never',
      },
    ],
  },

  'its results are in it, until it is redriven': {
    async play() {
      const one = await held();
      const [first, ...rest] = one.entries as [Entry, ...Entry[]];
      await settle(one, [...successes(rest), failure(first)]);
      const { connection, request, queue, id, generation } = one.scene;
      await queue.finish(id, generation, 'failed');
      const { results } = request.keys;
      expect(await connection.client.exists(results)).toBe(0);
      const before = await request.results('-', 9);
      expect(before.flatMap(({ records }) => records)).toHaveLength(3);
      await openedAgain(one.scene);
      expect(await connection.client.type(results)).toBe('stream');
      expect(await request.results('-', 9)).toEqual(before);
    },
    without: [
      {
        script: 'redrive',
        cure: 'a redriven request has a stream of results',
        change: { becomes: 'makeUsual(request, work, request .. "-")' },
      },
    ],
  },

  'the lease of a worker that has it is extended in it': {
    async play() {
      const { scene, hand } = await held();
      moveClock(LEASE_MS / 2);
      const renewed = await scene.request.renew(scene.generation, hand.name, LEASE_MS, []);
      expect(renewed).toMatchObject({ verdict: 'ok', permits: 3 });
      expect(await isCompact(scene)).toBe(true);
      const { leases, now } = await inspect(scene);
      expect(leases[hand.name]).toBeGreaterThan(now + LEASE_MS - 5_000);
    },
    without: [],
  },

  'a worker that has nothing of it renews nothing': {
    async play() {
      const { scene } = await held();
      expect(await scene.request.renew(scene.generation, 'other', LEASE_MS, [])).toMatchObject({
        verdict: 'lost',
      });
    },
    without: [
      {
        script: 'renew',
        cure: 'the lease of a compact request is of the worker that has it',
        change: 'never',
      },
    ],
  },

  'a generation is remembered for as long as it may be created': {
    async play() {
      const nothing = await given.nothing();
      const generation = await submitWhole(nothing, { items: 3, limit: 3, retentionMs: 1_000 });
      const scene = { ...nothing, generation };
      const hand = new Hand(scene);
      const entries = await hand.holdAtOnce(3);
      await settleAll({ scene, hand, entries });
      expect((await peek(scene)).status).toBe('complete');
      expect(await scene.connection.client.type(scene.request.keys.work)).toBe('stream');
    },
    without: [
      {
        script: 'submit',
        cure: 'a generation is remembered until its create is too old, of a compact request',
        change: 'always',
      },
    ],
  },

  'what waits is tended and stays compact, and a lost token is replaced': {
    async play() {
      const scene = await compact();
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({
        ...{ verdict: 'ok', mint: 0, epoch: 2, before: '1', next: 0 },
      });
      expect(await scene.request.tend(scene.generation, '')).toMatchObject({
        mint: 0,
        before: '1',
      });
      const minted = await scene.request.tend(scene.generation, '1');
      expect(minted).toMatchObject({ mint: 1, epoch: 2, before: '' });
      expect(minted.verdict === 'ok' && minted.next).toBeGreaterThan(0);
      expect(await isCompact(scene)).toBe(true);
      expect((await inspect(scene)).out).toBe(1);
    },
    without: [],
  },

  'what a dead worker had is taken back, and each counts a crash': {
    async play() {
      const { scene } = await held({ attempts: 2 });
      moveClock(LEASE_MS + 1);
      expect(await answerOf(scene.request.tend(scene.generation, ''))).toMatchObject({
        verdict: 'ok',
        reclaimed: 3,
      });
      const { counts, crashes, permits } = await inspect(scene);
      expect({ counts, crashes, permits }).toMatchObject({
        counts: { ready: 3, inFlight: 0 },
        crashes: { 0: 1, 1: 1, 2: 1 },
        permits: {},
      });
    },
    without: [{ script: 'tend', cure: 'a tend expands what a worker has', change: 'never' }],
  },

  'one that has a deadline ends at it': {
    async play() {
      const scene = await given.nothing();
      const generation = await submitWhole(scene, { deadlineMs: 5_000 });
      moveClock(5_001);
      expect(await answerOf(scene.request.tend(generation, ''))).toMatchObject({
        verdict: 'complete',
        outcome: 'failed',
      });
    },
    without: [
      { script: 'tend', cure: 'the deadline of a compact request ends it', change: 'never' },
    ],
  },

  'one that is held gets its token when its time has come': {
    async play() {
      const scene = await given.nothing();
      const generation = await submitWhole(scene, { delayMs: 5_000 });
      expect(await isCompact(scene)).toBe(true);
      const early = await answerOf(scene.request.tend(generation, ''));
      expect(early).toMatchObject({ verdict: 'ok', mint: 0 });
      const { next = 0 } = early as { next?: number };
      moveClock(5_001);
      expect(await answerOf(scene.request.tend(generation, ''))).toMatchObject({ mint: 1 });
      expect(next).toBeGreaterThan(0);
      expect(await isCompact(scene)).toBe(true);
    },
    without: [
      { script: 'tend', cure: 'a compact request that is held has no token', change: 'always' },
    ],
  },

  'one that is held begins after its delay, also where the clock has gone back': {
    async play() {
      const scene = await given.nothing();
      const generation = await submitWhole(scene, { delayMs: 5_000 });
      moveClock(-3_600_000);
      await scene.request.tend(generation, '');
      moveClock(5_001);
      expect(await answerOf(scene.request.tend(generation, ''))).toMatchObject({ mint: 1 });
    },
    without: [
      {
        script: 'tend',
        cure: 'a delay is not believed beyond its length, of a compact request',
        change: 'never',
      },
    ],
  },

  'one that the clock holds again is not entered': {
    async play() {
      const nothing = await given.nothing();
      const generation = await submitWhole(nothing, { delayMs: 5_000 });
      const scene = { ...nothing, generation };
      moveClock(5_001);
      expect(await answerOf(scene.request.tend(generation, ''))).toMatchObject({ mint: 1 });
      moveClock(-4_000);
      expect(await enter(scene)).toMatchObject({ verdict: 'ok', permits: 0 });
    },
    without: [
      {
        script: 'enter',
        cure: 'a compact request that is held again is not entered',
        change: 'never',
      },
    ],
  },

  'one that has a deadline ends after its length, also where the clock has gone back': {
    async play() {
      const scene = await given.nothing();
      const generation = await submitWhole(scene, { deadlineMs: 5_000 });
      moveClock(-3_600_000);
      await scene.request.tend(generation, '');
      moveClock(5_001);
      expect(await answerOf(scene.request.tend(generation, ''))).toMatchObject({
        verdict: 'complete',
        outcome: 'failed',
      });
    },
    without: [
      {
        script: 'tend',
        cure: 'a deadline is not believed beyond its length, of a compact request',
        change: 'never',
      },
    ],
  },

  'where two crashes fail it, no more is read ahead than there are permits': {
    async play() {
      const scene = await given.nothing();
      const generation = await submitWhole(scene, { maxCrashes: 2, limit: 9 });
      const entered = await scene.request.enter({
        ...{ generation, worker: 'worker', op: 1, want: 1, leaseMs: LEASE_MS, tasks: '*' },
        ...{ epochs: ['1'], most: 9, quick: 9 },
      });
      expect(entered).toMatchObject({ verdict: 'ok', permits: 1 });
      expect(entered.verdict === 'ok' && entered.entries).toHaveLength(1);
    },
    without: [
      {
        script: 'submit',
        cure: 'where few crashes are allowed a request is not compact',
        change: 'always',
      },
    ],
  },

  'a payload with the separator of replies is read as it was written': {
    async play() {
      const scene = await given.nothing();
      const payloads = ['"a"', '"b\x1ec"'];
      const generation = await submitWhole(scene, {}, 'call', payloads);
      const entries = await new Hand({ ...scene, generation }).holdAtOnce(2);
      expect(entries.map(({ payload }) => payload)).toEqual(payloads);
    },
    without: [
      { script: 'submit', cure: 'what separates payloads is in none of them', change: 'never' },
    ],
  },

  'one that is complete expires whatever form it gets': {
    async play() {
      const one = await held({ retentionMs: 200_000 });
      await settleAll(one);
      const { connection, generation, request } = one.scene;
      expect(await request.seal(generation, 'maker', 3)).toMatchObject(SUCCEEDED);
      expect(await isCompact(one.scene)).toBe(false);
      for (const key of [request.keys.request, request.keys.results]) {
        const left = await connection.client.pttl(key);
        expect(left).toBeGreaterThan(100_000);
        expect(left).toBeLessThanOrEqual(200_000);
      }
      expect(await inspect(one.scene)).toMatchObject({ status: 'complete', outcome: 'succeeded' });
    },
    without: [
      { script: 'seal', cure: 'a compact request that is complete expires in any form' },
      { script: 'seal', cure: 'a compact request that is complete expires in any form, 2' },
    ],
  },

  'one that is complete is kept for no longer when the clock has gone back': {
    async play() {
      moveClock(600_000);
      const one = await held({ retentionMs: 200_000 });
      await settleAll(one);
      moveClock(-600_000);
      const { connection, generation, request } = one.scene;
      await request.seal(generation, 'maker', 3);
      expect(await connection.client.pttl(request.keys.request)).toBeLessThanOrEqual(200_000);
    },
    without: [
      {
        script: 'seal',
        cure: 'a compact request is kept for no longer than it was meant',
        change: { becomes: '2 ^ 53' },
      },
    ],
  },

  'one that is complete stays as it is when it is asked for': {
    async play() {
      const one = await held();
      await settleAll(one);
      const { connection, id, generation, request } = one.scene;
      const complete = { verdict: 'complete' };
      const reader = new ReaderCommands(connection, id);
      expect(await reader.follow(generation)).toMatchObject(complete);
      const control = new ControlCommands(connection, id);
      expect(await control.pause(generation)).toMatchObject(complete);
      expect(await answerOf(control.cancel(generation))).toMatchObject(SUCCEEDED);
      expect(await answerOf(control.hold(generation, 9))).toMatchObject(SUCCEEDED);
      expect(await enter(one.scene)).toMatchObject(SUCCEEDED);
      expect(await answerOf(request.tend(generation, ''))).toMatchObject(SUCCEEDED);
      expect(await request.renew(generation, 'worker', 9, [])).toMatchObject({ verdict: 'gone' });
      expect(await isCompact(one.scene)).toBe(true);
    },
    without: [],
  },

  'a compact request is cancelled as a whole': {
    async play() {
      const scene = await compact();
      const commands = new ControlCommands(scene.connection, scene.id);
      expect(await answerOf(commands.cancel(scene.generation))).toMatchObject({
        verdict: 'complete',
        outcome: 'cancelled',
      });
      expect((await peek(scene)).counts.cancelled).toBe(3);
    },
    without: [],
  },

  'what a worker has is settled while the request is being cancelled': {
    async play() {
      const one = await held();
      const commands = new ControlCommands(one.scene.connection, one.scene.id);
      await commands.cancel(one.scene.generation);
      expect(await settleAll(one)).toMatchObject({ outcome: 'cancelled' });
      expect((await peek(one.scene)).counts).toMatchObject({ succeeded: 3, cancelled: 0 });
    },
    without: [],
  },
};

playTraces('compact requests', traces);
