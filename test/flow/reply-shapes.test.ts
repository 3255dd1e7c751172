import { Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import { Connection, InvalidOptionError, type RedisInput } from '@piecework/protocol';
import { IdQueue, RetryQueue, Scheduler } from '@piecework/queues';
import { Worker } from '@piecework/worker';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { Admin, DelayedTasks, Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { numbers, test } from '../support/flow.js';

/*
 * A client whose replies are of another shape than those that are read here would be accepted and never get
 * work done, or count wrongly. It is refused before anything is sent.
 */

const handler = () => 1;

/** All that takes where Redis is. */
const doors: Readonly<Record<string, (redis: RedisInput) => unknown>> = {
  Worker: (redis) => new Worker({ redis, handler }),
  Producer: (redis) => new Producer({ redis }),
  Notifier: (redis) => new Notifier({ redis }),
  Admin: (redis) => new Admin({ redis }),
  Piecework: (redis) => new Piecework({ redis }),
  DelayedTasks: (redis) => new DelayedTasks({ redis }),
  IdQueue: (redis) => IdQueue.join('ids', { redis }),
  RetryQueue: (redis) => new RetryQueue({ redis }),
  Scheduler: (redis) => new Scheduler({ redis }),
};

const lazy = { lazyConnect: true, host: 'localhost', port: 1 };
const resp3 = { protocol: 3, replyMapping: 'resp3' } as never;
const nodes = [{ host: 'localhost', port: 1 }];
const sentinels = [{ host: 'localhost', port: 1 }];

const shapes: Readonly<Record<string, [() => unknown, string]>> = {
  'a client of replyMapping resp3': [
    () => new Redis({ ...lazy, ...(resp3 as object) }),
    'replyMapping',
  ],
  'a client of stringNumbers': [() => new Redis({ ...lazy, stringNumbers: true }), 'stringNumbers'],
  'a client of Sentinels and resp3': [
    () => new Redis({ sentinels, name: 'a', lazyConnect: true, ...(resp3 as object) }),
    'replyMapping',
  ],
  'a cluster client of resp3': [
    () => new Cluster(nodes, { lazyConnect: true, redisOptions: resp3 }),
    'replyMapping',
  ],
  'a cluster client of stringNumbers': [
    () => new Cluster(nodes, { lazyConnect: true, redisOptions: { stringNumbers: true } }),
    'stringNumbers',
  ],
  'options of replyMapping resp3': [
    () => ({ host: 'localhost', replyMapping: 'resp3' }),
    'replyMapping',
  ],
  'nodes of replyMapping resp3': [
    () => ({ nodes, options: { redisOptions: resp3 } }),
    'replyMapping',
  ],
  'nodes of stringNumbers': [
    () => ({ nodes, options: { redisOptions: { stringNumbers: true } } }),
    'stringNumbers',
  ],
  'a URL of resp3': [() => 'redis://localhost:1?protocol=3&replyMapping=resp3', 'replyMapping'],
  'a URL of stringNumbers': [() => 'redis://localhost:1/0?stringNumbers=true', 'stringNumbers'],
  'a URL of a key prefix': [() => 'redis://localhost:1/?keyPrefix=x:', 'keyPrefix'],
  'a socket of a key prefix': [() => 'unix:///tmp/none.sock?keyPrefix=x:', 'keyPrefix'],
};

describe('replies of another shape are refused', () => {
  test.for(Object.entries(shapes))('by all who are given %s', async ([, [make, field]]) => {
    const redis = make() as RedisInput;
    for (const [door, open] of Object.entries(doors)) {
      const error = await Promise.resolve()
        .then(() => open(redis))
        .catch((thrown: unknown) => thrown);
      expect(error, door).toBeInstanceOf(InvalidOptionError);
      expect((error as InvalidOptionError).field, door).toBe(`redis.${field}`);
      expect((error as Error).message, door).toMatch(/allowed: .*(default|none)/);
    }
    if (redis instanceof Redis || redis instanceof Cluster) redis.disconnect();
  });
});

describe('work is done by a client with', { tags: 'one-server' }, () => {
  test.for<[string, RedisOptions]>([
    ['protocol 3', { protocol: 3 }],
    ['automatic pipelines', { enableAutoPipelining: true }],
    ['no ready check', { enableReadyCheck: false }],
  ])('%s', async ([, options], { flow }) => {
    const client = (flow.connection.client as Redis).duplicate(options as never);
    flow.after(() => client.quit());
    const redis = client as RedisInput;
    const worker = flow.worker({ redis, handler: (n: number) => n });
    const producer = flow.producer({ redis });
    flow.after(() => Promise.all([worker.close(), producer.close()]));
    await worker.start();
    const { id } = await producer.submit(numbers(20));
    const notifier = new Notifier({ redis, queue: flow.queue });
    flow.after(() => notifier.close());
    const { counts } = await notifier.completion(id);
    expect(counts).toMatchObject({ succeeded: 20, failed: 0, total: 20 });
    const queue = await IdQueue.join(flow.id('ids'), { redis: Connection.open(redis) });
    await queue.add(['a', 'b']);
    expect(await queue.counts()).toEqual({ pending: 2, running: 0, completed: 0, failures: 0 });
    await queue.drop();
  });
});
