/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import { ControlCommands, type Entry, RunningCommands } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  back,
  failure,
  given,
  Hand,
  holds,
  LEASE_MS,
  type Scene,
  success,
} from '../support/given.js';
import { inspect, peek } from '../support/peek.js';
import { answerOf, playTraces, type Trace } from '../support/trace.js';
import { compact, isCompact, readWhole, submitWhole } from '../support/whole.js';

/*
 * Histories of small requests: state and sub-requests are one string (lua/lib/compact.lua). Each is for one cure.
 */

useTestClock();

const successes = (entries: readonly Pick<Entry, 'entry' | 'index'>[]) =>
  entries.map((entry) => success(entry, `"${entry.index}"`));

/** Settles all three at once. */
async function ended(): Promise<Scene> {
  const { scene, hand, entries } = await readWhole();
  await hand.trySettle(successes(entries), { keep: 0 });
  expect(await isCompact(scene)).toBe(true);
  return scene;
}

const traces: Record<string, Trace> = {
  'a worker that reads a part of a compact request reads it from the stream': {
    async play() {
      const scene = await compact();
      const hand = new Hand(scene);
      const entries = await hand.hold(2);
      expect(entries.map(({ payload }) => payload)).toEqual(['item 0', 'item 1']);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 1, inFlight: 2 });
    },
    without: [],
  },

  'a worker that reads a part of a compact request gets no more than that': {
    async play() {
      const scene = await compact({ limit: 2 });
      const hand = new Hand(scene);
      const entries = await hand.holdAtOnce(2);
      expect(entries.map(({ payload }) => payload)).toEqual(['item 0', 'item 1']);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 1, inFlight: 2 });
    },
    without: [{ script: 'enter', cure: 'of a compact request all is read', change: 'never' }],
  },

  'what one worker has read as a whole is settled together, without a stream': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      const { permits, pending, counts } = await inspect(scene);
      expect({ permits, counts }).toMatchObject({
        permits: { worker: 3 },
        counts: { ready: 0, inFlight: 3 },
      });
      expect(pending).toHaveLength(3);
      expect(await hand.trySettle(successes(entries))).toMatchObject({ outcome: 'succeeded' });
      expect((await peek(scene)).results).toHaveLength(3);
    },
    without: [],
  },

  'nobody else gets a permit of what one worker has read as a whole': {
    async play() {
      const { scene } = await readWhole();
      const other = await new Hand(scene, 'other').enter(3, [1], 3);
      expect(other).toMatchObject({ permits: 0, ready: 0, entries: [] });
    },
    without: [
      {
        script: 'enter',
        cure: 'what is compact may be with a worker, in a stream',
        change: 'never',
      },
    ],
  },

  'of what was read as a whole, only what is there counts as settled': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      const settled = [...entries.slice(1), { entry: `${scene.generation}-3`, index: 3 }];
      expect(await hand.trySettle(successes(settled))).toMatchObject({ verdict: 'ok' });
      expect((await peek(scene)).counts).toMatchObject({ succeeded: 2, inFlight: 1 });
    },
    without: [
      {
        script: 'settle',
        cure: 'each sub-request of a compact request ends once',
        change: 'always',
      },
    ],
  },

  'what was read as a whole is settled in parts, with failures and returns': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      const [first, second, third] = entries as [Entry, Entry, Entry];
      await hand.settle([success(first), failure(second, 0)], { running: 1, keep: 1 });
      await hand.settle([back(third)], { keep: 0 });
      const { counts, tries } = await inspect(scene);
      expect(counts).toMatchObject({ succeeded: 1, ready: 2, inFlight: 0 });
      expect(tries).toEqual({ 1: 1 });
    },
    without: [
      {
        script: 'settle',
        cure: 'what is compact may be with a worker, in a stream',
        change: 'never',
      },
    ],
  },

  'what was read as a whole is settled although its worker is unsure of its grant': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      expect(await answerOf(hand.trySettle(successes(entries), { grantNo: '' }))).toMatchObject({
        outcome: 'succeeded',
      });
      expect((await peek(scene)).counts.succeeded).toBe(3);
    },
    without: [],
  },

  'what was read as a whole is settled while the request is being cancelled': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      const commands = new ControlCommands(scene.connection, scene.id);
      expect(await answerOf(commands.cancel(scene.generation))).toMatchObject({
        verdict: 'cancelling',
      });
      expect(await hand.trySettle(successes(entries))).toMatchObject({ outcome: 'cancelled' });
      expect((await peek(scene)).counts).toMatchObject({ succeeded: 3, cancelled: 0 });
    },
    without: [],
  },

  'what was read as a whole is renewed, with checkpoints': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      const reports = ['1', '50', '0:checkpoint', '{"at":1}'];
      const { generation, request } = scene;
      expect(await answerOf(request.renew(generation, hand.name, 30_000, reports))).toMatchObject({
        verdict: 'ok',
        permits: 3,
      });
      expect((await peek(scene)).pending).toHaveLength(3);
      expect(await hand.trySettle(successes(entries))).toMatchObject({ outcome: 'succeeded' });
    },
    without: [
      {
        script: 'renew',
        cure: 'what is compact may be with a worker, in a stream',
        change: 'never',
      },
    ],
  },

  'what was read as a whole stays with its worker when it enters once more': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      await hand.enter(1, []);
      expect(await isCompact(scene)).toBe(false);
      expect((await inspect(scene)).pending).toHaveLength(3);
      expect(await hand.trySettle(successes(entries))).toMatchObject({ outcome: 'succeeded' });
    },
    without: [
      {
        script: 'enter',
        cure: 'what is compact may be with a worker, in a stream',
        change: 'never',
      },
    ],
  },

  'what was read as a whole may be run alone': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      const alone = scene.request.runAlone(scene.generation, hand.name, 1, [entries[0]!.entry]);
      expect(await answerOf(alone)).toMatchObject({ verdict: 'ok' });
      expect((await inspect(scene)).alone).toEqual({ 0: hand.name });
    },
    without: [
      {
        script: 'run-alone',
        cure: 'what is compact may be with a worker, in a stream',
        change: 'never',
      },
    ],
  },

  'another worker settles nothing of what one worker has read as a whole': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      const other = new Hand(scene, 'other');
      expect(await answerOf(other.trySettle(successes(entries)))).toMatchObject({
        verdict: 'ok',
        permits: 0,
      });
      const { counts, pending } = await inspect(scene);
      expect(counts).toMatchObject({ succeeded: 0, inFlight: 3 });
      expect(pending.map(({ owner }) => owner)).toEqual([hand.name, hand.name, hand.name]);
    },
    without: [
      {
        script: 'settle',
        cure: 'what is compact may be with a worker, in a stream',
        change: 'never',
      },
    ],
  },

  'what was read as a whole is settled while the request is paused': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      await holds(scene).pause(scene.generation);
      expect(await hand.trySettle(successes(entries))).toMatchObject({ outcome: 'succeeded' });
    },
    without: [],
  },

  'payloads are read as a whole as they were written': {
    async play() {
      const scene = await given.nothing();
      const payloads = ['"3:ab"', '""', '', '"ä\u0000"', '12:'];
      const generation = await submitWhole(scene, { limit: 5 }, 'call', payloads);
      const entries = await new Hand({ ...scene, generation }).holdAtOnce(5);
      expect(entries.map(({ payload }) => payload)).toEqual(payloads);
    },
    without: [],
  },

  'what a dead worker had read as a whole is taken back, and each counts a crash': {
    async play() {
      const { scene } = await readWhole();
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

  'what was returned is with no worker': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      await hand.settle(entries.slice(1).map(back), { keep: 1, running: 1 });
      const running = new RunningCommands(scene.connection, scene.id);
      expect(await running.owners()).toEqual([{ worker: hand.name, pending: 1 }]);
    },
    without: [
      {
        script: 'pending',
        cure: 'an entry that no worker owns is not running',
        change: 'always',
      },
    ],
  },

  'a settle that finds its enter lost is answered': {
    async play() {
      const scene = await compact();
      const hand = new Hand(scene);
      const settled = hand.trySettle([success({ entry: `${scene.generation}-0` })]);
      expect(await answerOf(settled)).toMatchObject({ verdict: 'ok', permits: 0 });
      expect((await inspect(scene)).counts).toMatchObject({ ready: 3, succeeded: 0 });
    },
    without: [],
  },

  'the results of a small request are read from any place': {
    async play() {
      const scene = await ended();
      const at = (settled: number) => `${scene.generation}-${settled}`;
      const read = async (from: string, to?: string) =>
        (await scene.request.results(from, 10, to)).map(({ position }) => position);
      for (const from of ['-', at(0), at(3), `(${at(2)}`, `(${scene.generation - 1}-9`])
        expect(await read(from)).toEqual([at(3)]);
      for (const from of [`(${at(3)}`, at(4), `${scene.generation + 1}`])
        expect(await read(from)).toEqual([]);
    },
    without: [{ script: 'read-results', cure: 'the only record is read once', change: 'never' }],
  },

  'the results of a small request are not read beyond the end of a reader': {
    async play() {
      const scene = await ended();
      const { generation } = scene;
      const read = async (to: string) => (await scene.request.results('-', 10, to)).length;
      for (const to of ['+', `${generation}`, `${generation}-3`, `${generation + 1}-0`])
        expect(await read(to)).toBe(1);
      for (const to of [`${generation - 1}`, `${generation}-2`]) expect(await read(to)).toBe(0);
    },
    without: [
      {
        script: 'read-results',
        cure: 'the only record is not read before its place',
        change: 'never',
      },
    ],
  },

  'an id whose state was deleted by hand begins anew': {
    async play() {
      const { scene, hand, entries } = await readWhole();
      await scene.request.renew(scene.generation, hand.name, LEASE_MS, [1, 50]);
      await hand.trySettle(successes(entries), { keep: 0 });
      const { queue, request, id, connection } = scene;
      expect(await connection.client.type(request.keys.results)).toBe('stream');
      const { client } = connection;
      await client.unlink(request.keys.request);
      moveClock(5);
      expect(await submitWhole(scene)).toBe(0);
      const generation = await queue.intent(id);
      const creation = { generation, owner: 'owner', leaseMs: 30_000, options: '[]' };
      const created = request.create(creation);
      expect(await answerOf(created)).toMatchObject({ verdict: 'created' });
      expect(await client.type(request.keys.work)).toBe('stream');
      expect(await client.type(request.keys.results)).toBe('none');
    },
    without: [{ script: 'create', cure: 'a new request has no results' }],
  },
};

playTraces('small requests', traces);
