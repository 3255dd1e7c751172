/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import { ControlCommands, type Entry, ReaderCommands } from '@piecework/protocol';
import { run } from '@piecework/protocol/testing';
import { expect } from 'vitest';
import { type Mutation, moveClock, useTestClock } from '../support/clock.js';
import { expand, settleWhole } from '../support/compact.js';
import { given, Hand, LEASE_MS, type Scene, success } from '../support/given.js';
import { inspect, peek } from '../support/peek.js';
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

/** Settles all at once, as a worker does. */
const settleAll = (
  { scene, hand, entries }: Held,
  { worker = hand.name, grantNo = hand.grantNo, value = '' } = {},
) =>
  scene.request.settleCompact(
    scene.queue,
    scene.generation,
    worker,
    grantNo,
    successes(entries, value),
  );

/** The same of several in one turn of the event loop. */
const settleTogether = (...all: readonly Held[]) => Promise.all(all.map((one) => settleAll(one)));

/** As `held`, in the queue of another. */
async function another({ scene: { queue } }: Held): Promise<Held> {
  const { scene, ...rest } = await held({ queue: queue.keys.queue });
  return { scene: { ...scene, queue }, ...rest };
}

/** Enters several compact requests in one call, and answers the text for each. */
async function enterAll(scenes: readonly Scene[], { tasks = '*', epoch = 1, most = 3 } = {}) {
  const [{ connection }] = scenes as [Scene];
  const keys = { requests: scenes.map(({ request }) => request.keys.request) };
  const entering = scenes.map(({ generation }, i) => ({ generation, op: i + 1, want: 3, epoch }));
  const args = { worker: 'worker', leaseMs: LEASE_MS, tasks, most, ahead: 0, quick: 0, entering };
  return (await run(connection.client, 'enter-compact', keys, args)).entered;
}

/** A process that has met compact requests enters them by a call of their own. */
const everyEnter = (cure: string): Mutation[] =>
  (['enter', 'enter-compact'] as const).map((script) => ({ script, cure, change: 'never' }));

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
      expect(await settleAll(one)).toBe('complete');
      expect(await isCompact(one.scene)).toBe(true);
      const over = await inspect(one.scene);
      expect(over).toMatchObject({ status: 'complete', outcome: 'succeeded', permits: {} });
      expect(over.results.map(({ value }) => value)).toEqual(['"0"', '"1"', '"2"']);
      expect(await settleAll(one)).toBe('complete');
      expect((await peek(one.scene)).results).toHaveLength(3);
    },
    without: [
      { script: 'inspect', cure: 'what is compact may be with a worker', change: 'always' },
    ],
  },

  'several are entered in one call, each for what it is': {
    async play() {
      const scenes = [await compact(), await given.sealed({ items: 1 }), await compact()];
      const [first, other, last] = await enterAll(scenes);
      const payloads = ['item 0', 'item 1', 'item 2'];
      expect(first?.split('\x1e')).toEqual(['3 1 1', '50', '', '', ...payloads]);
      expect(other).toBe('');
      expect(last?.split('\x1e').slice(4)).toEqual(payloads);
      expect((await inspect(scenes[1] as Scene)).granted).toBe(0);
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
    without: [everyEnter('a compact request has one worker')],
  },

  'a worker that does not serve its task leaves it to others': {
    async play() {
      const scene = await compact({ task: 'census' });
      expect(await enterAll([scene], { tasks: ' other ' })).toEqual(['']);
      const entered = await new Hand(scene).tryEnter(3, [1], ' other ', 3);
      expect(entered).toMatchObject({ verdict: 'unserved', task: 'census' });
      const served = await compact({ task: 'census' });
      expect(await enterAll([served], { tasks: ' census ' })).not.toEqual(['']);
    },
    without: [
      {
        script: 'enter-compact',
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
      expect(await enterAll([scene], { epoch: 1 })).toEqual(['']);
      expect(await enterAll([scene], { epoch: 2 })).not.toEqual(['']);
    },
    without: [
      {
        script: 'enter-compact',
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
    without: [everyEnter('of a compact request all is read')],
  },

  'a worker settles only what it has by this grant': {
    async play() {
      const one = await held();
      expect(await settleAll(one, { grantNo: '7' })).toBeUndefined();
      expect((await inspect(one.scene)).counts).toMatchObject({ succeeded: 0, inFlight: 3 });
    },
    without: [
      {
        script: 'settle-compact',
        cure: 'number of the grant, of a compact request',
        change: 'never',
      },
    ],
  },

  'another worker settles nothing of it': {
    async play() {
      const one = await held();
      expect(await settleAll(one, { worker: 'other' })).toBeUndefined();
      expect((await inspect(one.scene)).counts).toMatchObject({ succeeded: 0, inFlight: 3 });
    },
    without: [
      {
        script: 'settle-compact',
        cure: 'a compact request is settled by the worker that has it',
        change: 'never',
      },
    ],
  },

  'a part of it is settled as of any request': {
    async play() {
      const one = await held();
      const [first, second] = one.entries as [Entry, Entry];
      expect(await settleAll({ ...one, entries: [first, second] })).toBeUndefined();
      await one.hand.settle([success(first), success(second)], { running: 1, keep: 1 });
      const { counts } = await inspect(one.scene);
      expect(counts).toMatchObject({ succeeded: 2, inFlight: 1 });
    },
    without: [
      {
        script: 'settle-compact',
        cure: 'a compact request is settled as a whole',
        change: 'never',
      },
    ],
  },

  'several that one call completes are finished by it': {
    async play() {
      const first = await held();
      const { queue, id, generation, connection } = first.scene;
      const { client } = connection;
      const { open, history, counters, pushed, agenda } = queue.keys;
      const list = queue.keys.list(50);
      // The call names no list of tokens, as nothing has named one before.
      expect(await settleTogether(first, await another(first))).toEqual(['complete', 'complete']);
      expect(await client.exists(open, agenda)).toBe(0);
      expect(await client.zscore(history, id)).not.toBeNull();
      expect(await client.hget(counters, 'succeeded')).toBe('2');
      expect(await client.exists(pushed, list)).toBe(2);
      await queue.finish(id, generation, 'succeeded');
      expect(await client.exists(pushed, list)).toBe(0);
      expect(await client.hget(counters, 'succeeded')).toBe('2');
      const [third, fourth] = [await another(first), await another(first)];
      expect(await settleTogether(third, fourth)).toEqual(['finished', 'finished']);
      expect(await client.exists(open, agenda, pushed, list)).toBe(0);
      for (const { scene } of [third, fourth])
        expect(await client.exists(scene.request.keys.results)).toBe(1);
    },
    without: [],
  },

  'of several only those are finished that are complete': {
    async play() {
      const first = await held();
      const [second, third] = [await another(first), await another(first)];
      await expand(second.scene.request);
      const ends = await settleTogether(first, second, third);
      expect(ends).toEqual(['finished', undefined, 'finished']);
      const { client } = first.scene.connection;
      const open = await client.hkeys(first.scene.queue.keys.open);
      expect(open).toEqual([second.scene.id]);
    },
    without: [],
  },

  'requests of two queues are settled apart': {
    async play() {
      const both = [await held(), await held()] as const;
      expect(await settleTogether(...both)).toEqual(['complete', 'complete']);
      for (const { scene } of both)
        expect(await scene.connection.client.hexists(scene.queue.keys.open, scene.id)).toBe(1);
    },
    without: [],
  },

  'one that a call completes alone is not finished by it': {
    async play() {
      const one = await held();
      const { queue, id, generation, connection } = one.scene;
      expect(await settleAll(one)).toBe('complete');
      expect(await connection.client.hexists(queue.keys.open, id)).toBe(1);
      await queue.finish(id, generation, 'succeeded');
      expect(await connection.client.exists(queue.keys.open)).toBe(0);
    },
    without: [],
  },

  'a repeat finishes nothing that was opened since': {
    async play() {
      const one = await held();
      const grantNo = Number(one.hand.grantNo);
      expect((await settleWhole(one.scene, { grantNo })).complete).toEqual([1]);
      const { queue, id, generation, connection } = one.scene;
      const next = await queue.intent(id);
      expect(next).toBeGreaterThan(generation);
      expect((await settleWhole(one.scene, { grantNo })).complete).toEqual([1]);
      expect(await connection.client.hget(queue.keys.open, id)).toBe(`${next}`);
    },
    without: [{ script: 'settle-compact', cure: 'generation on finish' }],
  },

  'long results say how long they are': {
    async play() {
      const one = await held();
      const value = `"${'x'.repeat(30_000)}"`;
      expect(await settleAll(one, { value })).toBeUndefined();
      // Of a client that asks all the same.
      const grantNo = Number(one.hand.grantNo);
      expect((await settleWhole(one.scene, { grantNo, value })).complete).toEqual([0]);
      expect(await one.hand.trySettle(successes(one.entries, value))).toMatchObject({
        outcome: 'succeeded',
      });
      expect(Number((await peek(one.scene)).fields['longest'])).toBeGreaterThan(90_000);
    },
    without: [
      {
        script: 'settle-compact',
        cure: 'a long record is not usual, of a compact request',
        change: 'never',
      },
    ],
  },

  'results that are too long for a string are a stream': {
    async play() {
      const one = await held();
      expect(await settleAll(one, { value: `"${'x'.repeat(2_000)}"` })).toBe('complete');
      expect(await isCompact(one.scene)).toBe(true);
      const { client } = one.scene.connection;
      expect(await client.type(one.scene.request.keys.results)).toBe('stream');
      expect(await client.pttl(one.scene.request.keys.results)).toBeGreaterThan(0);
      const read = await one.scene.request.results('-', 10);
      expect(read.flatMap(({ records }) => records)).toHaveLength(3);
    },
    without: [],
  },

  'a generation is remembered for as long as it may be created': {
    async play() {
      const nothing = await given.nothing();
      const generation = await submitWhole(nothing, { items: 3, limit: 3, retentionMs: 1_000 });
      const scene = { ...nothing, generation };
      const hand = new Hand(scene);
      const entries = await hand.holdAtOnce(3);
      if (!(await settleAll({ scene, hand, entries }))) await hand.trySettle(successes(entries));
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
      const [text] = await enterAll([{ ...scene, generation }]);
      if (text !== '') expect(text?.split('\x1e').slice(4)).toEqual(payloads);
      else
        expect(
          (await new Hand({ ...scene, generation }).holdAtOnce(2)).map((e) => e.payload),
        ).toEqual(payloads);
    },
    without: [
      { script: 'submit', cure: 'what separates payloads is in none of them', change: 'always' },
    ],
  },

  'a task with the separator of replies is answered as it is': {
    async play() {
      const scene = await given.nothing();
      const task = 'cen\x1esus';
      const generation = await submitWhole(scene, { task });
      const [text] = await enterAll([{ ...scene, generation }]);
      if (text !== '') expect(text?.split('\x1e')[2]).toBe(task);
    },
    without: [
      {
        script: 'submit',
        cure: 'what separates the parts of a reply is in none of them',
        change: 'always',
      },
    ],
  },

  'one that is complete expires whatever form it gets': {
    async play() {
      const one = await held({ retentionMs: 200_000 });
      await settleAll(one);
      const { connection, id, generation, request } = one.scene;
      expect(await new ReaderCommands(connection, id).follow(generation)).toMatchObject({
        verdict: 'complete',
      });
      expect(await isCompact(one.scene)).toBe(false);
      const left = await connection.client.pttl(request.keys.request);
      expect(left).toBeGreaterThan(100_000);
      expect(left).toBeLessThanOrEqual(200_000);
      expect(await inspect(one.scene)).toMatchObject({ status: 'complete', outcome: 'succeeded' });
    },
    without: [{ script: 'follow', cure: 'a compact request that is complete expires in any form' }],
  },

  'one that is complete is kept for no longer when the clock has gone back': {
    async play() {
      moveClock(600_000);
      const one = await held({ retentionMs: 200_000 });
      await settleAll(one);
      moveClock(-600_000);
      const { connection, id, generation, request } = one.scene;
      await new ReaderCommands(connection, id).follow(generation);
      expect(await connection.client.pttl(request.keys.request)).toBeLessThanOrEqual(200_000);
    },
    without: [
      {
        script: 'follow',
        cure: 'a compact request is kept for no longer than it was meant',
        change: { becomes: '2 ^ 53' },
      },
    ],
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
      expect(await settleAll(one)).toBeUndefined();
      expect(await one.hand.trySettle(successes(one.entries))).toMatchObject({
        outcome: 'cancelled',
      });
      expect((await peek(one.scene)).counts).toMatchObject({ succeeded: 3, cancelled: 0 });
    },
    without: [],
  },
};

playTraces('compact requests', traces);
