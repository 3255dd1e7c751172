/**
 * Requests that are submitted in one call, which needs one server for all keys.
 * @module-tag one-server
 */
import { ControlCommands } from '@piecework/protocol';
import { expect } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { given, Hand, type Options, type Scene, success } from '../support/given.js';
import { inspect, peek } from '../support/peek.js';
import { redriveOf } from '../support/redriven.js';
import { playTraces, type Trace } from '../support/trace.js';
import { submitWhole } from '../support/whole.js';

/*
 * Histories of small requests: their sub-requests are a string until a worker comes, and so are their results
 * (lua/lib/packed.lua, only-record.lua). Each is for one cure.
 */

useTestClock();

async function packed(options: Options = {}): Promise<Scene> {
  const scene = await given.nothing();
  const generation = await submitWhole(scene, { items: 3, limit: 2, ...options });
  const { client } = scene.connection;
  expect(await client.type(scene.request.keys.work)).toBe('string');
  return { ...scene, generation };
}

/** Settles all three at once. */
async function ended(): Promise<Scene> {
  const scene = await packed({ limit: 3 });
  const hand = new Hand(scene);
  const entries = await hand.hold(3);
  await hand.trySettle(entries.map((entry) => success(entry, `"${entry.index}"`)));
  expect(await scene.connection.client.type(scene.request.keys.results)).toBe('string');
  return scene;
}

/** What a call answers; an error of the server as its code. */
const answerOf = (call: Promise<object | string>) =>
  call.catch((error: { code: string }) => ({ code: error.code }));

const traces: Record<string, Trace> = {
  'who has a permit of a packed request reads its sub-requests': {
    async play() {
      const scene = await packed();
      const hand = new Hand(scene);
      const entries = await hand.hold(2);
      expect(entries.map(({ payload }) => payload)).toEqual(['item 0', 'item 1']);
      expect((await inspect(scene)).counts).toMatchObject({ ready: 1, inFlight: 2 });
    },
    without: [{ script: 'enter', cure: 'a permit has a stream to read', change: 'never' }],
  },

  'a packed request is cancelled as a whole': {
    async play() {
      const scene = await packed();
      const commands = new ControlCommands(scene.connection, scene.id);
      expect(await answerOf(commands.cancel(scene.generation))).toMatchObject({
        verdict: 'complete',
        outcome: 'cancelled',
      });
      expect((await peek(scene)).counts.cancelled).toBe(3);
    },
    without: [{ script: 'cancel', cure: 'what is packed is cancelled', change: 'always' }],
  },

  'a packed request is tended, and stays packed': {
    async play() {
      const scene = await packed();
      expect(await answerOf(scene.request.tend(scene.generation, ''))).toMatchObject({
        verdict: 'ok',
      });
      expect(await scene.connection.client.type(scene.request.keys.work)).toBe('string');
    },
    without: [{ script: 'tend', cure: 'nobody has what is packed', change: 'never' }],
  },

  'a settle that finds its enter lost is answered': {
    async play() {
      const scene = await packed();
      const hand = new Hand(scene);
      const settled = hand.trySettle([success({ entry: `${scene.generation}-0` })]);
      expect(await answerOf(settled)).toMatchObject({ verdict: 'ok', permits: 0 });
      expect((await inspect(scene)).counts).toMatchObject({ ready: 3, succeeded: 0 });
    },
    without: [{ script: 'settle', cure: 'a settle finds a stream', change: 'never' }],
  },

  'results of two settles are a stream': {
    async play() {
      const scene = await packed({ limit: 3 });
      const hand = new Hand(scene);
      const [first, ...others] = await hand.hold(3);
      await hand.trySettle([success(first!, '"0"')], { keep: 3, running: 2 });
      await hand.trySettle(others.map((entry) => success(entry, `"${entry.index}"`)));
      expect((await peek(scene)).results).toHaveLength(3);
    },
    without: [{ script: 'settle', cure: 'only the only record is a string', change: 'always' }],
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

  'a redrive keeps the results of a small request': {
    async play() {
      const scene = await ended();
      const before = await scene.request.results('-', 10);
      const opened = await redriveOf(scene).open(scene.generation + 1, 'redriver', 30_000);
      expect(opened).toMatchObject({ verdict: 'opened' });
      expect(await scene.connection.client.type(scene.request.keys.results)).toBe('stream');
      expect(await scene.request.results('-', 10)).toEqual(before);
    },
    without: [
      { script: 'redrive', cure: 'a redriven request has a stream of results', change: 'never' },
    ],
  },

  'an id whose state was deleted by hand begins anew': {
    async play() {
      for (const scene of [await packed(), await ended()]) {
        const { queue, request, id, connection } = scene;
        const { client } = connection;
        await client.unlink(request.keys.request);
        moveClock(5);
        expect(await submitWhole(scene)).toBe(0);
        const generation = await queue.intent(id);
        const created = request.create(generation, 'owner', 30_000, []);
        expect(await answerOf(created)).toMatchObject({ verdict: 'created' });
        expect(await client.type(request.keys.work)).toBe('stream');
        expect(await client.type(request.keys.results)).toBe('none');
      }
    },
    without: [{ script: 'create', cure: 'a new request has no results' }],
  },
};

playTraces('small requests', traces);
