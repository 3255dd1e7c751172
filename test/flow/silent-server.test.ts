/**
 * A server that accepts and never answers.
 * @module-tag one-server
 * @module-tag processes
 */
import { Notifier } from '@piecework/notifier';
import { Connection, ConnectionError, QueueCommands, TIMES } from '@piecework/protocol';
import { describe, expect } from 'vitest';
import { type Flow, gate, heard, numbers, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { SwallowingProxy } from '../support/swallowing-proxy.js';
import { until } from '../support/until.js';

/** So that nobody has to wait for the 20 s that are the default, and no machine is so slow by itself. */
const ANSWER_MS = 3_000;

async function proxied(flow: Flow) {
  const proxy = await SwallowingProxy.open(Number(new URL(flow.redis as string).port));
  flow.after(() => proxy[Symbol.asyncDispose]());
  const redis = {
    host: '127.0.0.1',
    port: proxy.port,
    commandTimeout: ANSWER_MS,
    socketTimeout: ANSWER_MS,
  };
  return { proxy, redis };
}

describe('a connection that went silent', () => {
  test('is given up by default, and its calls with it', () => {
    for (const redis of [
      'redis://127.0.0.1:1',
      { host: '127.0.0.1', port: 1 },
      { nodes: [{ host: '127.0.0.1', port: 1 }] },
      'redis://127.0.0.1:1,redis://127.0.0.1:2',
    ]) {
      const { client } = Connection.open(redis);
      const options = {
        ...client.options,
        ...(client.options as { redisOptions?: object }).redisOptions,
      };
      expect(options).toMatchObject({
        commandTimeout: TIMES.answerMs,
        socketTimeout: TIMES.answerMs,
      });
      client.disconnect();
    }
  });

  test('fails the call that waits on it, and is replaced', async ({ flow }) => {
    const { proxy, redis } = await proxied(flow);
    const connection = Connection.open(redis);
    flow.after(() => connection.close());
    await connection.check();
    const queue = new QueueCommands(connection, flow.queue);
    await queue.counts();
    const before = proxy.accepted;
    proxy.swallow();
    await expect(queue.tick('', '')).rejects.toBeInstanceOf(ConnectionError);
    proxy.lift();
    await until(async () => (await queue.tick('', '')).now > 0);
    expect(proxy.accepted).toBeGreaterThan(before);
  });

  test('stops neither worker nor producer nor notifier for good', async ({ flow }) => {
    const { proxy, redis } = await proxied(flow);
    const { queue } = flow;
    const ran: number[] = [];
    const held = gate();
    const worker = flow.worker({
      redis,
      concurrency: 4,
      handler: async (n: number) => {
        ran.push(n);
        if (n < 4) await held.opened;
        return n;
      },
    });
    await worker.start();
    const notifier = new Notifier({ redis, queue, sweepMs: 1_000 });
    flow.after(() => notifier.close());
    const producer = flow.producer({ redis });
    const id = flow.id('working');
    await producer.submit(numbers(200), { id, limit: 4 });
    const completion = notifier.completion(id);
    await until(() => ran.length === 4);

    proxy.swallow();
    const before = proxy.accepted;
    // The outcomes of these, and this submission, go into the hole.
    held.open();
    const other = producer.submit(numbers(1_200), { id: flow.id('swallowed'), limit: 4 });
    await until(() => proxy.accepted > before);
    proxy.lift();

    expect(await other).toMatchObject({ total: 1_200 });
    await flow.complete(id);
    await flow.complete(flow.id('swallowed'), 50_000);
    expect(await completion).toMatchObject({ status: 'succeeded', counts: { succeeded: 200 } });
    expect((await flow.results(id)).size).toBe(200);
    expect((await flow.results(flow.id('swallowed'))).size).toBe(1_200);
    // No lease ended meanwhile, so nothing was run twice.
    expect(ran.length).toBe(1_400);
    await Promise.all([worker.close(), producer.close(), notifier.close()]);
  });

  test('is not what a worker without work waits for, whatever the time limits of its client', async ({
    flow,
  }) => {
    const { proxy, redis } = await proxied(flow);
    const worker = flow.worker({ redis, handler: () => {} });
    const errors: unknown[] = [];
    worker.on('error', (error) => errors.push(error));
    const pops = async () =>
      Number(
        /cmdstat_blmpop:calls=(\d+)/.exec(await flow.connection.client.info('commandstats'))?.[1] ??
          0,
      );
    await worker.start();
    // Its blocking connection and its control channel are there.
    await until(() => worker.health().ready);
    await heard(flow);
    const [before, accepted] = [await pops(), proxy.accepted];
    // As many as take longer than a call may.
    await until(async () => (await pops()) - before >= 3, { timeoutMs: 60_000 });
    expect(errors).toEqual([]);
    expect(worker.health().ready).toBe(true);
    expect(proxy.accepted).toBe(accepted);
    await worker.close();
  });

  test('keeps no worker from closing for as long as it would be waited for', async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    // No limit for answers: whatever is waited for at the server is waited for until the test is over time.
    const redis = { port: Number(new URL(server.url).port), commandTimeout: 600_000 };
    const worker = flow.worker({ redis, shards: 2, handler: () => {} });
    await worker.start();
    await until(() => worker.health().ready);
    await server.kill('SIGSTOP');
    await worker.close({ timeoutMs: 0 });
    await server.kill('SIGCONT');
  });
});
