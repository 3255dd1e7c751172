/**
 * Clients of another copy of ioredis than the one of Piecework, as applications have that use another major version.
 * @module-tag processes
 */
import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { Connection } from '@piecework/protocol';
import { Scheduler } from '@piecework/queues';
import { Worker } from '@piecework/worker';
import { Cluster, Redis } from 'ioredis-5';
import { Admin, Piecework } from 'piecework';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Log, numbers } from '../support/flow.js';
import { freshName } from '../support/given.js';
import { testCluster, testRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const CLIENTS = {
  Redis: async () => new Redis((await testRedis()).url),
  Cluster: async () =>
    new Cluster((await testCluster()).nodes.map(({ host, port }) => ({ host, port }))),
};

describe.each(Object.entries(CLIENTS))('a %s of ioredis 5', (name, open) => {
  test('serves each role, and stays open', async () => {
    const redis = await open();
    onTestFinished(() => redis.disconnect());
    const queue = freshName('other-ioredis');
    const log = new Log();
    const work = { logger: log as never, concurrency: 4 };
    const ran: number[] = [];
    const handler = async (n: number, { signal }: { signal: AbortSignal }) => {
      ran.push(n);
      if (n < 0)
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return n * 2;
    };
    await using worker = new Worker({ redis, queue, handler, ...work });
    await using producer = new Producer({ redis, queue });
    await using notifier = new Notifier({ redis, queue });
    await using admin = new Admin({ redis, queue });
    await worker.start();

    const small = await producer.submit(numbers(3));
    expect(await notifier.completion(small.id)).toMatchObject({ status: 'succeeded' });
    const big = await producer.submit(numbers(600), { window: 300, limit: 50 });
    const values: unknown[] = [];
    for await (const { value } of notifier.results(big.id, { order: 'index' })) values.push(value);
    expect(values).toEqual(numbers(600).map((n) => n * 2));

    // The worker waits in a blocking pop by now.
    const stuck = await producer.submit([-1]);
    await until(() => ran.includes(-1));
    expect(await admin.running(stuck.id)).toHaveLength(1);
    await admin.cancel(stuck.id);
    expect(await notifier.completion(stuck.id)).toMatchObject({ status: 'cancelled' });
    expect(worker.health()).toMatchObject({ ready: true, why: [] });

    const findings = await admin.doctor();
    expect(findings.filter(({ level }) => level === 'error')).toEqual([]);
    for (const { id } of [small, big, stuck]) await admin.drop(id);

    await using scheduler = new Scheduler<string>({ redis, name: queue });
    const due = scheduler.takeDue({ lockMs: 10_000, waitMs: 60_000 });
    await scheduler.enqueue('now', Date.now());
    expect(await due).toHaveLength(1);
    await scheduler.drop();
    await worker.close();
    expect(log.lines).toEqual([]);
    expect(await redis.ping(), `of a ${name}`).toBe('PONG');
  });
});

test('a client that lacks what Piecework calls is refused, and what it lacks is named', () => {
  const client = new Redis({ lazyConnect: true });
  const without = Object.assign(client, { pipeline: undefined }) as unknown as Redis;
  expect(() => new Piecework({ redis: without })).toThrow(
    /^redis: "an ioredis client without pipeline" is not allowed; allowed: a Redis or Cluster of ioredis 5/,
  );
  const half = Object.assign(new Redis({ lazyConnect: true }), { isCluster: true });
  expect(() => Connection.open(half)).toThrow(
    /an ioredis client without nodes, refreshSlotsCache, slots, startupNodes/,
  );
});
