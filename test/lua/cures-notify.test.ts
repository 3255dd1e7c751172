import { expect } from 'vitest';
import { useTestClock } from '../support/clock.js';
import { failure, given, Hand, PRODUCER, type Scene, success } from '../support/given.js';
import { openedAgain, runAgain } from '../support/redriven.js';
import { playTraces, type Trace } from '../support/trace.js';
import { until } from '../support/until.js';

/*
 * What the process that submitted a request hears on the channel that it named. In a cluster it names none.
 */

useTestClock();

/** A scene whose state names a channel, and the messages on it. */
async function named(options: Parameters<typeof given.sealed>[0] = {}) {
  const scene = await given.sealed({ items: 2, limit: 2, ...options });
  const { keys } = scene.request;
  const channel = `done:{${scene.id}~1}`;
  await scene.connection.client.hset(keys.request, 'notify', channel);
  const heard: string[] = [];
  const { client: listener } = await scene.connection.openFor(channel, {});
  listener.on('smessage', (_: string, message: string) => heard.push(message));
  await listener.ssubscribe(channel);
  return { scene, heard, channel, close: () => listener.disconnect() };
}

async function completed(scene: Scene, values: readonly string[]) {
  const hand = new Hand(scene);
  const entries = await hand.hold(2);
  for (const [i, entry] of entries.entries()) await hand.trySettle([success(entry, values[i])]);
}

/** The one message, without what names the request. */
async function messageOf({ scene, heard }: Awaited<ReturnType<typeof named>>): Promise<string> {
  await until(() => heard.length > 0);
  const [message = ''] = heard.splice(0);
  const start = `done:{${scene.id}} ${scene.generation} `;
  expect(message.slice(0, start.length)).toBe(start);
  return message.slice(start.length).replaceAll(`${scene.generation}-`, '');
}

const tags = ['one-server'];

const traces: Record<string, Trace> = {
  'a message to who submitted a request brings its results, if all succeeded and they are few': {
    async play() {
      const few = await named();
      await completed(few.scene, ['"a"', '']);
      expect(await messageOf(few)).toBe('succeeded 2 2 0 0 -\u001d1\u001e0 "a"\u001d2\u001e1 ');
      few.close();

      const long = await named();
      await completed(long.scene, [`"${'x'.repeat(1_020)}"`, '1']);
      expect(await messageOf(long)).toBe('succeeded 2 2 0 0 -');
      long.close();

      const longAtEnd = await named();
      await completed(longAtEnd.scene, ['1', `"${'x'.repeat(1_020)}"`]);
      expect(await messageOf(longAtEnd)).toBe('succeeded 2 2 0 0 -');
      longAtEnd.close();

      const discarded = await named({ results: 'discard' });
      await completed(discarded.scene, ['1', '2']);
      expect(await messageOf(discarded)).toBe('succeeded 2 2 0 0 -');
      discarded.close();
    },
    without: [],
    tags,
  },

  'results that expire within a minute are not in the message': {
    async play() {
      const soon = await named({ retentionMs: 59_000 });
      await completed(soon.scene, ['1', '2']);
      expect(await messageOf(soon)).toBe('succeeded 2 2 0 0 -');
      soon.close();
    },
    without: [{ script: 'settle', cure: 'results that expire soon are read' }],
    tags,
  },

  'of a request that was redriven the results are read, with what failed before': {
    async play() {
      const told = await named();
      const { scene } = told;
      const hand = new Hand(scene);
      const [first, second] = await hand.hold(2);
      await hand.trySettle([success(first!, '1'), failure(second!)]);
      expect(await messageOf(told)).toBe('failed 2 1 1 0 -');
      await scene.queue.finish(scene.id, scene.generation, 'failed');
      const again = await openedAgain(scene);
      await runAgain(again, [1]);
      await again.request.seal(again.generation, PRODUCER, 2);
      const next = new Hand(again);
      const [only] = await next.hold(1);
      await next.trySettle([success(only!, '2')]);
      await until(() => told.heard.length > 0);
      expect(told.heard[0]).toMatch(/succeeded 2 2 0 0 -$/);
      told.close();
    },
    without: [
      { script: 'settle', cure: 'a message brings no record of a failure', change: 'never' },
    ],
    tags,
  },

  'of a request of which everything failed before, the results are read': {
    async play() {
      const told = await named({ items: 1, limit: 1 });
      const { scene } = told;
      const hand = new Hand(scene);
      const [entry] = await hand.hold(1);
      await hand.trySettle([failure(entry!)]);
      expect(await messageOf(told)).toBe('failed 1 0 1 0 -');
      await scene.queue.finish(scene.id, scene.generation, 'failed');
      const again = await openedAgain(scene);
      await runAgain(again, [0]);
      await again.request.seal(again.generation, PRODUCER, 1);
      const next = new Hand(again);
      const [only] = await next.hold(1);
      await next.trySettle([success(only!, '2')]);
      await until(() => told.heard.length > 0);
      expect(told.heard[0]).toMatch(/succeeded 1 1 0 0 -$/);
      told.close();
    },
    without: [],
    tags,
  },

  'who submitted a request hears that it was dropped': {
    async play() {
      const told = await named();
      await told.scene.request.drop();
      const { connection, generation, request } = told.scene;
      await connection.client.spublish(told.channel, 'last');
      await until(() => told.heard.includes('last'));
      expect(told.heard).toEqual([`${request.keys.channel} ${generation} dropped`, 'last']);
      told.close();
    },
    without: [{ script: 'drop', cure: 'whoever submitted a request learns that it was dropped' }],
    tags,
  },
};

playTraces('messages to who submitted a request', traces);
