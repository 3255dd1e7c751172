/**
 * What a caller learns when a call fails, and that asking again is safe. The client that loses replies
 * is one of a single server.
 * @module-tag one-server
 */
import { ConnectionError, IndeterminateError } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Admin, Piecework } from 'piecework';
import { describe, expect } from 'vitest';
import { freePort } from '../../packages/embedded/src/free-port.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { LossyRedis } from '../support/lossy-redis.js';
import { payloadsIn } from '../support/payloads.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const ITEMS = 1_100;
const items = numbers(ITEMS);
function* stream() {
  yield* items;
}
const sources: [string, () => Iterable<number>][] = [
  ['an array', () => items],
  ['a stream', stream],
];

/** A client of the test's server that loses replies when told. */
function lossy(flow: Flow): LossyRedis {
  const client = new LossyRedis(flow.redis as string, { protocol: 2 });
  flow.after(() => client.quit());
  return client;
}

/** The payloads of a request in the order of their index. */
const payloadsOf = (flow: Flow, id: string): Promise<unknown[]> =>
  payloadsIn(flow.connection.client, flow.request(id).keys);

describe('a submission whose reply got lost', () => {
  test.for(sources)(
    'says so at every call, and asked again is the same: %s',
    async ([, source], { flow }) => {
      const client = lossy(flow);
      const producer = flow.producer({ redis: client });
      for (let n = 1; ; n += 1) {
        const id = flow.id(`call-${n}`);
        const options = { id, unavailableMs: 0 };
        client.lose(n);
        const first = await producer.submit(source(), options).catch((thrown: unknown) => thrown);
        const needed = client.calls;
        client.lose(0);
        if (needed < n) {
          expect(first).toMatchObject({ id, total: ITEMS });
          // intent, create, 3 × append, at least one push, seal.
          expect(n).toBeGreaterThan(7);
          return;
        }
        expect(first).toBeInstanceOf(IndeterminateError);
        expect(first).toMatchObject({ code: 'INDETERMINATE', retryable: true, requestId: id });
        expect((first as Error).cause).toBeInstanceOf(ConnectionError);
        const again = await producer.submit(source(), options);
        expect(again, `call ${n}`).toMatchObject({ id, total: ITEMS });
        expect(await payloadsOf(flow, id), `call ${n}`).toEqual(items);
        const state = await flow.request(id).state();
        expect(state).toMatchObject({ status: 'sealed', total: ITEMS });
      }
    },
  );

  test.for(sources)(
    'is carried through by itself while there is patience: %s',
    async ([, source], { flow }) => {
      const client = lossy(flow);
      const producer = flow.producer({ redis: client });
      for (let n = 1; ; n += 1) {
        const id = flow.id(`call-${n}`);
        client.lose(n);
        expect(await producer.submit(source(), { id })).toMatchObject({ total: ITEMS });
        if (client.calls < n) return;
        expect(await payloadsOf(flow, id), `call ${n}`).toEqual(items);
      }
    },
  );

  test('is found by another process, by the content of an array', async ({ flow }) => {
    const client = lossy(flow);
    const options = { id: flow.id('moved'), unavailableMs: 0 };
    client.lose(4);
    const first = flow.producer({ redis: client }).submit(items, options);
    await expect(first).rejects.toBeInstanceOf(IndeterminateError);
    const elsewhere = flow.producer();
    const others = items.with(700, -1);
    await expect(elsewhere.submit(others, options)).rejects.toMatchObject({ code: 'EXISTS' });
    await expect(elsewhere.submit(items, { ...options, limit: 3 })).rejects.toMatchObject({
      code: 'EXISTS',
    });
    await expect(elsewhere.submit(stream(), options)).rejects.toMatchObject({ code: 'EXISTS' });
    await elsewhere.submit(items, options);
    expect(await payloadsOf(flow, options.id)).toEqual(items);
  });

  test('is one request, though it is asked for many times at once', async ({ flow }) => {
    const id = flow.id('crowd');
    const producers = numbers(4).map(() => flow.producer());
    const all = await Promise.all(producers.map((one) => one.submit(items, { id })));
    expect(new Set(all.map(({ generation }) => generation)).size).toBe(1);
    expect(all.map(({ total }) => total)).toEqual([ITEMS, ITEMS, ITEMS, ITEMS]);
    expect(await payloadsOf(flow, id)).toEqual(items);
  });

  test('is found when it is complete, and ran once', async ({ flow }) => {
    const id = flow.id('done');
    const ran: number[] = [];
    await flow.worker({ handler: (n: number) => void ran.push(n) }).start();
    const first = await flow.producer().submit(numbers(30), { id });
    await flow.complete(id);
    expect(await flow.producer().submit(numbers(30), { id })).toEqual({ ...first, created: false });
    await expect(flow.producer().submit(numbers(31), { id })).rejects.toMatchObject({
      code: 'EXISTS',
    });
    expect(ran.sort((a, b) => a - b)).toEqual(numbers(30));
    expect(await flow.queueCommands.whereabouts(id)).not.toHaveProperty('open');
  });

  test('that was given up meanwhile is not taken for submitted', async ({ flow }) => {
    const client = lossy(flow);
    const options = { id: flow.id('late'), unavailableMs: 0, onProducerLost: 'seal' as const };
    const producer = flow.producer({ redis: client });
    // The third append: two thirds of the items are in.
    client.lose(5);
    const first = producer.submit(items, options);
    await expect(first).rejects.toBeInstanceOf(IndeterminateError);
    // What a tick does when the producer lease has run out.
    const { request } = flow.request(options.id).keys;
    await flow.connection.client.hset(request, 'producerUntil', 1);
    const { generation } = (await flow.request(options.id).state()) as { generation: number };
    await flow.request(options.id).tend(generation, '');
    await expect(producer.submit(items, options)).rejects.toMatchObject({ code: 'EXISTS' });
  });
});

describe('an open request whose reply got lost', () => {
  test('is joined, sealed and cancelled by a repeated call', async ({ flow }) => {
    const client = lossy(flow);
    const producer = flow.producer({ redis: client });
    for (const end of ['seal', 'cancel'] as const) {
      const options = { id: flow.id(end), unavailableMs: 0 };
      client.lose(2);
      await expect(producer.open(options)).rejects.toBeInstanceOf(IndeterminateError);
      client.lose(0);
      const open = await producer.open(options);
      await open.append(1, 2, 3);
      await open.flush();
      client.lose(1);
      await expect(open[end]()).rejects.toBeInstanceOf(IndeterminateError);
      client.lose(0);
      await open[end]();
      const status = end === 'seal' ? 'sealed' : 'complete';
      expect(await flow.request(options.id).state()).toMatchObject({ status, total: 3 });
    }
  });

  test('is dropped by itself, at whichever call it was', async ({ flow }) => {
    const client = lossy(flow);
    const admin = new Admin({ redis: client, queue: flow.queue });
    for (let n = 1; ; n += 1) {
      const id = flow.id(`drop-${n}`);
      await flow.producer().submit([1], { id });
      client.lose(n);
      await admin.drop(id);
      expect(await flow.request(id).state()).toMatchObject({ status: 'dropped' });
      expect(await flow.queueCommands.whereabouts(id)).toEqual({});
      if (client.calls < n) return;
    }
  });
});

describe('a Redis that is gone', { tags: ['own-server', 'processes'] }, () => {
  test('is distinguished from a lost reply: a call that was never sent is not indeterminate', async ({
    flow,
  }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    const client = new LossyRedis(server.url, { protocol: 2 });
    client.on('error', () => {});
    flow.after(() => client.disconnect());
    const producer = flow.producer({ redis: client });
    const admin = new Admin({ redis: client, queue: flow.queue });
    await producer.submit([1], { id: flow.id('before') });
    await server.kill('SIGKILL');
    await until(() => client.status !== 'ready');
    const options = { id: flow.id('after'), unavailableMs: 300 };
    const refused = await producer.submit([1], options).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(ConnectionError);
    expect(refused).toMatchObject({ code: 'CONNECTION', retryable: true });
    await expect(producer.open(options)).rejects.toBeInstanceOf(ConnectionError);
    await Promise.all([producer.close(), admin.close()]);
  });

  test('is a typed error when `unavailableMs` has passed', async ({ flow }) => {
    const redis = `redis://127.0.0.1:${await freePort()}`;
    const admin = new Admin({ redis, queue: flow.queue, unavailableMs: 100 });
    flow.after(() => admin.close());
    for (const asked of [admin.counts(), admin.cancel('nothing')])
      await expect(asked).rejects.toMatchObject({
        code: 'CONNECTION',
        message: expect.stringContaining('ECONNREFUSED'),
      });
  });

  test('ends no client that was passed in, and holds up no close', async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    const client = new Redis(server.url);
    client.on('error', () => {});
    flow.after(() => client.disconnect());
    const own = new Piecework({ redis: server.url, queue: flow.queue });
    const producer = flow.producer({ redis: client });
    for (const from of [own, producer]) await (await from.open()).append(1);
    await server.kill('SIGKILL');
    // A look at the agenda is under way.
    const { offlineQueue } = client as unknown as { offlineQueue: { length: number } };
    await until(() => client.status === 'reconnecting' && offlineQueue.length > 0, {
      timeoutMs: 20_000,
    });
    // What was appended cannot be sent any more: they say so, in the end.
    const closed = await Promise.allSettled([producer.close(), own.close()]);
    const code = { status: 'rejected', reason: { code: 'CLOSED' } };
    expect(closed).toMatchObject([code, code]);
    expect(client.status).not.toBe('end');
  });

  test('is not reached yet: a close meanwhile is what ends the submission', async ({ flow }) => {
    for (const options of [{}, { dedupe: { key: flow.id('key') } }]) {
      const pw = new Piecework({ redis: flow.redis, queue: flow.queue });
      const submitting = pw.submit([1], options).catch((thrown: unknown) => thrown);
      await pw.close();
      expect(await submitting).toMatchObject({ code: 'CLOSED', retryable: false });
    }
  });

  test('is waited for until `unavailableMs` has passed', async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    const producer = flow.producer({ redis: server.url });
    await producer.submit([1], { id: flow.id('before') });
    await server.kill('SIGSTOP');
    const submitting = producer.submit(numbers(10), { id: flow.id('patient') });
    const hasty = await producer
      .submit(numbers(10), { id: flow.id('hasty'), unavailableMs: 100 })
      .catch((thrown: unknown) => thrown);
    expect(hasty).toBeInstanceOf(IndeterminateError);
    await server.kill('SIGCONT');
    expect(await submitting).toMatchObject({ total: 10 });
    expect(await producer.submit(numbers(10), { id: flow.id('hasty') })).toMatchObject({
      total: 10,
    });
  });
});
