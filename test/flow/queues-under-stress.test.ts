import { setImmediate as turn } from 'node:timers/promises';
import { ConnectionError, InvalidOptionError, type RedisInput } from '@piecework/protocol';
import { IdQueue, RetryQueue } from '@piecework/queues';
import { Worker } from '@piecework/worker';
import { describe, expect } from 'vitest';
import { test as flowTest, numbers } from '../support/flow.js';
import { LossyRedis } from '../support/lossy-redis.js';
import { startOwnRedis } from '../support/redis.js';
import { test } from '../support/timed.js';
import { until } from '../support/until.js';

/** Warnings of Node, and rejections that nobody handled, until the test is over. */
function faults(after: (work: () => unknown) => void): unknown[] {
  const seen: unknown[] = [];
  const note = (fault: unknown) => seen.push(fault);
  for (const event of ['warning', 'unhandledRejection', 'uncaughtException'])
    process.on(event, note);
  after(() => {
    for (const event of ['warning', 'unhandledRejection', 'uncaughtException'])
      process.off(event, note);
  });
  return seen;
}

describe('consume', () => {
  test('puts an item back if the function for its next attempt throws', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    await queue.put('x');
    const why = new Error('no time');
    const consumed = queue.consume(
      async () => {
        throw new Error('handler');
      },
      {
        retryDelayMs: () => {
          throw why;
        },
      },
    );
    await expect(consumed).rejects.toBe(why);
    expect(await queue.counts()).toMatchObject({ waiting: 1, leased: 0 });
  });

  test('retries after a second if the delay is not a number', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    await queue.put('x');
    const over = new AbortController();
    const consumed = queue.consume(
      () => {
        throw new Error('handler');
      },
      { retryDelayMs: () => undefined as never, signal: over.signal },
    );
    await until(async () => {
      const { waiting, next = 0 } = await queue.counts();
      return waiting === 1 && next > Date.now() - 60_000;
    });
    over.abort();
    await consumed;
  });

  test('discards whatever was thrown', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    const over = new AbortController();
    const thrown = [
      Object.create(null),
      Symbol('s'),
      undefined,
      { toString: () => Promise.reject },
    ];
    for (const [i] of thrown.entries()) await queue.put(`${i}`);
    const consumed = queue.consume(
      (payload) => {
        throw thrown[Number(payload)];
      },
      { maxFailures: 1, signal: over.signal },
    );
    await until(async () => (await queue.counts()).failures === thrown.length);
    over.abort();
    await consumed;
  });
});

describe('an item that is put again while it is taken', () => {
  test('has no failures any more', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    await queue.put('old', { key: 'k' });
    const items = queue.items();
    const { value: old } = await items.next();
    await queue.put('new', { key: 'k' });
    expect(await old!.retry({ delayMs: 3_600_000 })).toBe(true);
    const { value: fresh } = await items.next();
    expect(fresh).toMatchObject({ payload: 'new', numFailures: 0 });
    await fresh!.done();
    await items.return();
  });
});

describe('many callers of one object', () => {
  test('leak no listeners', async ({ timed }) => {
    const seen = faults(timed.after);
    const scheduler = timed.scheduler<string>();
    const over = new AbortController();
    const waiting = Array.from({ length: 20 }, () => scheduler.takeDue({ waitMs: 60_000 }));
    const streams = Array.from({ length: 20 }, () => scheduler.due({ signal: over.signal }).next());
    const ended = Promise.allSettled(waiting);
    await until(async () => (await scheduler.counts()).waiting === 0);
    over.abort();
    await Promise.all(streams);
    await scheduler.close();
    await ended;
    expect(seen).toEqual([]);
  });
});

describe('many who pull from one worker', () => {
  flowTest('may share a signal', async ({ flow }) => {
    const seen = faults(flow.after);
    const worker = new Worker({ redis: flow.redis as RedisInput, queue: flow.queue });
    flow.after(() => worker.close());
    const { signal } = new AbortController();
    for (const _ of numbers(20)) worker.subRequests({ signal })[Symbol.asyncIterator]();
    // Warnings come in a turn of their own.
    await turn();
    expect(seen).toEqual([]);
  });
});

describe('a caller', () => {
  test('gets no more than it asked for, also after a lost answer', {
    tags: ['one-server'],
  }, async ({ timed }) => {
    const redis = new LossyRedis(timed.redis as string, { protocol: 2 });
    timed.after(() => redis.disconnect());
    const scheduler = timed.scheduler<number>({ redis, unavailableMs: 0 });
    for (const at of [1, 2, 3]) await scheduler.enqueue(at, at);
    redis.lose(1);
    await expect(scheduler.takeDue({ count: 3 })).rejects.toMatchObject({ retryable: true });
    expect(await scheduler.takeDue({ count: 1 })).toMatchObject([{ object: 1 }]);
    expect(await scheduler.counts()).toMatchObject({ waiting: 2, locked: 1 });
    await scheduler.close();
  });

  test('is remembered for longer than its calls are tried', async ({ timed }) => {
    const queue = timed.retryQueue<string>({ unavailableMs: 86_400_000 });
    await queue.put('x');
    const callers = (await timed.keys()).filter((key) => key.includes(':caller:'));
    expect(callers).toHaveLength(1);
    const leftMs = await timed.connection.client.pttl(callers[0] as string);
    expect(leftMs).toBeGreaterThan(86_400_000);
  });

  test('may not name a time before 1970', async ({ timed }) => {
    const queue = timed.retryQueue<string>();
    await expect(queue.put('x', { at: new Date(-5) })).rejects.toBeInstanceOf(InvalidOptionError);
    expect(await queue.put('x', { at: new Date(0), key: 'first' })).toBe('first');
  });
});

describe('a Redis that is gone', { tags: 'own-server' }, () => {
  test('ends calls with errors of ours, and keeps no close waiting', async ({ timed }) => {
    const seen = faults(timed.after);
    const server = await startOwnRedis();
    timed.after(() => server.close());
    const onError = () => {
      throw new Error('of the listener');
    };
    const queue = new RetryQueue<string>({
      ...{ redis: server.url, name: timed.name, unavailableMs: 100, onError },
    });
    timed.after(() => queue.close());
    await queue.put('held');
    const items = queue.items({ demand: 2, leaseMs: 4_000 });
    const { value: held } = await items.next();
    const waiting = items.next();
    await queue.counts();
    const ids = await IdQueue.join(timed.name, { redis: server.url, unavailableMs: 86_400_000 });
    timed.after(() => ids.close());
    await server.kill('SIGKILL');
    const add = ids.add('x');
    add.catch(() => {});
    await until(() => held!.signal.aborted);
    await expect(queue.drop()).rejects.toBeInstanceOf(ConnectionError);
    const many = Array.from({ length: 20 }, () => queue.counts());
    const ends = await Promise.allSettled(many);
    for (const end of ends) expect(end).toMatchObject({ reason: { code: 'CONNECTION' } });
    await queue.close();
    await ids.close();
    await expect(add).rejects.toMatchObject({ retryable: true });
    expect(await waiting).toEqual({ done: true, value: undefined });
    await turn();
    expect(seen).toEqual([]);
  });
});

describe('meters', () => {
  flowTest('bear a listener that rejects, and end with their queue', async ({ flow }) => {
    const seen = faults(flow.after);
    const queue = await IdQueue.join(flow.queue, { redis: flow.redis as RedisInput });
    flow.after(() => queue.close());
    const errors: unknown[] = [];
    await queue.meters({
      everyMs: 10,
      onReading: async () => {
        throw new Error('of the listener');
      },
      onError: async (error) => {
        errors.push(error);
        throw error;
      },
    });
    await until(() => errors.length > 0);
    await queue.drop();
    const late = queue.meters({ everyMs: 10 });
    await Promise.all([queue.close(), expect(late).rejects.toMatchObject({ code: 'CLOSED' })]);
    await turn();
    expect(seen).toEqual([]);
  });

  flowTest('and pulls of many callers may share a signal', async ({ flow }) => {
    const seen = faults(flow.after);
    const rest = { after: 1, ms: 60_000 };
    const queue = await IdQueue.join(flow.queue, { redis: flow.redis as RedisInput, rest });
    flow.after(() => queue.close());
    await queue.add('one');
    await queue.pull();
    expect(await queue.pull()).toMatchObject({ state: 'processing' });
    const over = new AbortController();
    const pulls = Array.from({ length: 20 }, () => queue.pull({ signal: over.signal }));
    const ended = Promise.allSettled(pulls);
    await queue.counts();
    over.abort();
    for (const end of await ended) expect(end).toMatchObject({ reason: { code: 'ABORTED' } });
    await queue.drop();
    expect(seen).toEqual([]);
  });
});
