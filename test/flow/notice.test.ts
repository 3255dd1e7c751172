/**
 * What a message on the channel of a request does to those who wait for it.
 * @module-tag one-server
 */
import { Notifier } from '@piecework/notifier';
import { Redis } from 'ioredis';
import { beforeAll, describe, expect } from 'vitest';
import { type Flow, gate, test } from '../support/flow.js';
import {
  connected,
  failure,
  given,
  Hand,
  PRODUCER,
  type Scene,
  success,
} from '../support/given.js';
import { scriptOf } from '../support/script-names.js';
import { until } from '../support/until.js';

// Opened before the first test counts its connections.
beforeAll(async () => (await connected()).check());

/** A sweep that never comes. */
const NEVER = 600_000;

/** A client that counts its reads of a state, and holds them back until it is told. */
class Reader extends Redis {
  reads = 0;
  held: Promise<void> | undefined;

  override sendCommand(
    ...[command, stream]: Parameters<Redis['sendCommand']>
  ): ReturnType<Redis['sendCommand']> {
    const isRead = scriptOf(command.name, command.args) === 'read-state';
    if (!isRead || this.status !== 'ready') return super.sendCommand(command, stream);
    // Sent again with its text where the server does not know the script, it is the same read.
    if (command.name === 'evalsha') this.reads += 1;
    if (!this.held) return super.sendCommand(command, stream);
    void this.held.then(() => super.sendCommand(command, stream));
    return command.promise;
  }
}

/** One who waits for a request; `held`: its reads do not come. */
async function waiting(flow: Flow, scene: Scene, held?: Promise<void>) {
  const redis = new Reader(flow.redis as string, { protocol: 2 });
  redis.held = held;
  const notifier = new Notifier({ redis, queue: flow.queue, sweepMs: NEVER });
  flow.after(async () => {
    await notifier.close();
    redis.disconnect();
  });
  let over = false;
  const completion = notifier.completion(scene.id).finally(() => {
    over = true;
  });
  completion.catch(() => {});
  await until(() => redis.reads > 0, { what: 'it is subscribed, and looks' });
  if (!held) {
    const reports = notifier.progress(scene.id);
    await reports.next();
    await reports.return(undefined);
  }
  return { redis, completion, isOver: () => over };
}

const publish = async (flow: Flow, { request }: Scene, message: string) =>
  expect(await flow.connection.client.spublish(request.keys.channel, message)).toBe(1);

/** One succeeds and one fails. */
async function work(scene: Scene): Promise<void> {
  const hand = new Hand(scene);
  const [one, two] = await hand.hold(2);
  await hand.trySettle([success(one!), failure(two!)]);
  await scene.queue.finish(scene.id, scene.generation, 'failed');
}

const ENDED = { status: 'failed', counts: { total: 2, succeeded: 1, failed: 1, cancelled: 0 } };

describe('a notice', () => {
  test('gives the outcome to a caller that saw the request, without a read', async ({ flow }) => {
    const scene = await given.sealed({ queue: flow.queue, items: 2 });
    const { redis, completion } = await waiting(flow, scene);
    const { reads } = redis;
    redis.held = new Promise(() => {});
    await work(scene);
    const { generation } = scene;
    expect(await completion).toMatchObject({ ...ENDED, generation });
    expect(redis.reads).toBe(reads);
  });

  test('of a later generation says that it was dropped', async ({ flow }) => {
    const scene = await given.sealed({ queue: flow.queue, items: 2 });
    const { redis, completion } = await waiting(flow, scene);
    redis.held = new Promise(() => {});
    await publish(flow, scene, `${scene.generation + 1} dropped`);
    expect(await completion.catch((thrown: unknown) => thrown)).toMatchObject({ code: 'DROPPED' });
    await work(scene);
  });

  test('of another generation, or of unknown form, causes a read', async ({ flow }) => {
    const scene = await given.sealed({ queue: flow.queue, items: 2 });
    const { redis, completion, isOver } = await waiting(flow, scene);
    const { generation } = scene;
    for (const message of [
      `${generation - 1} succeeded 2 2 0 0 -`,
      // Another request may use the id.
      `${generation + 1} succeeded 2 2 0 0 -`,
      `${generation - 1} dropped`,
      `${generation} succeeded`,
      `${generation} succeeded 2 1 0 0 -`,
      `${generation} succeeded 2 2 0 0 0`,
      `${generation} succeeded 2 2 0 -0`,
      `${generation} done 2 2 0 0`,
      ` ${generation} succeeded 2 2 0 0 -`,
      `${generation}`,
      '',
    ]) {
      const { reads } = redis;
      await publish(flow, scene, message);
      await until(() => redis.reads === reads + 1, { what: `it looks after '${message}'` });
      // The answer to the look has come as well.
      await redis.ping();
      await new Promise(setImmediate);
      expect(isOver(), message).toBe(false);
    }
    await work(scene);
    expect(await completion).toMatchObject({ ...ENDED, generation });
  });

  test('to a caller that has seen nothing yet may be of a generation before', async ({ flow }) => {
    for (const message of ['succeeded 3 3 0 0 -', 'dropped']) {
      const scene = await given.created({ queue: flow.queue });
      const held = gate();
      const { redis, completion, isOver } = await waiting(flow, scene, held.opened);
      await publish(flow, scene, `${scene.generation - 1} ${message}`);
      await until(() => redis.reads === 2, { what: 'it looks' });
      expect(isOver()).toBe(false);
      held.open();
      await redis.ping();
      await scene.request.seal(scene.generation, PRODUCER, 0);
      const { generation } = scene;
      expect(await completion).toMatchObject({ generation, counts: { total: 0 } });
      await scene.queue.finish(scene.id, generation, 'succeeded');
    }
  });
});
