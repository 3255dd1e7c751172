/**
 * Where there is no Redis, or not the one that is meant: everybody is told why, at every call.
 * @module-tag own-server
 * @module-tag processes
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startRedis } from '@piecework/embedded';
import { Connection } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { IdQueue, Piecework, RetryQueue, Scheduler } from 'piecework';
import { describe, expect, vi } from 'vitest';
import { freePort } from '../../packages/embedded/dist/free-port.js';
import { cli } from '../support/cli.js';
import { type Flow, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

async function firstOf(items: AsyncIterable<unknown>): Promise<unknown> {
  for await (const item of items) return item;
  return undefined;
}

const thrownBy = (call: Promise<unknown>) => call.catch((thrown: unknown) => thrown);

describe('a db that the server does not have', () => {
  const refusal = {
    ...{ name: 'ServerError', code: 'NO_DB', retryable: false },
    message: expect.stringMatching(/no db of this number: .*databases/),
  };

  test('is not db 0 instead', async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    const redis = `${server.url}/99`;
    await using pw = new Piecework({ redis, queue: flow.queue });
    expect(await thrownBy(pw.check())).toMatchObject(refusal);
    expect(await thrownBy(pw.submit([1]))).toMatchObject(refusal);
    const worker = flow.worker({ redis, handler: () => 1 });
    expect(await thrownBy(worker.start())).toMatchObject(refusal);
    const ended = await cli(['list', '--queue', flow.queue], { redis });
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('no db of this') });
    const onlooker = new Redis(server.url);
    flow.after(() => onlooker.disconnect());
    expect(await onlooker.dbsize()).toBe(0);
  });

  test('is refused also of a client that is passed in, and left as its owner took it', async ({
    flow,
  }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    const strange = new Redis(`${server.url}/99`);
    flow.after(() => strange.disconnect());
    strange.on('error', () => {});
    expect(await thrownBy(Connection.open(strange).check())).toMatchObject(refusal);
    const client = new Redis(`${server.url}/3`);
    flow.after(() => client.disconnect());
    await client.select(5);
    await Connection.open(client).check();
    await client.set('here', 1);
    await client.select(0);
    await Connection.open(client).check();
    expect(await client.exists('here')).toBe(0);
    await client.select(5);
    expect(await client.exists('here')).toBe(1);
  });
});

test('the db that a client chose last is that of its worker, too', async ({ flow }) => {
  const server = await startOwnRedis();
  flow.after(() => server.close());
  const client = new Redis(server.url);
  flow.after(() => client.disconnect());
  await client.select(5);
  await using pw = new Piecework({ redis: client, queue: flow.queue });
  const worker = flow.worker({ redis: client, handler: () => 1 });
  await worker.start();
  const request = await pw.submit([1]);
  expect(await request.completion({ timeoutMs: 60_000 })).toMatchObject({ status: 'succeeded' });
  await worker.close();
  await client.select(0);
  expect(await client.dbsize()).toBe(0);
});

describe('where nothing listens', () => {
  const refusal = {
    ...{ name: 'ConnectionError', code: 'CONNECTION', retryable: true },
    message: expect.stringMatching(/^connect: ECONNREFUSED .*: nothing listens there; /),
  };

  test('queues get this error too, and work with the first Redis that they reach', async ({
    flow,
  }) => {
    const port = await freePort();
    const redis = `redis://127.0.0.1:${port}`;
    await using retries = new RetryQueue<string>({ redis, name: flow.queue });
    await using scheduler = new Scheduler<string>({ redis, name: flow.queue });
    const calls = () => ({
      ...{ put: retries.put('a'), counts: retries.counts(), drop: retries.drop() },
      ...{ items: firstOf(retries.items()), failures: firstOf(retries.failures()) },
      ...{ enqueue: scheduler.enqueue('a', 0), remove: scheduler.remove('a') },
      ...{ takeDue: scheduler.takeDue(), due: firstOf(scheduler.due()) },
      ...{ locks: scheduler.counts(), join: IdQueue.join(flow.queue, { redis, timeoutMs: 1_000 }) },
    });
    for (let round = 0; round < 2; round += 1) {
      const told = Object.entries(calls()).map(([name, call]) => [name, thrownBy(call)] as const);
      for (const [name, error] of told) expect(await error, name).toMatchObject(refusal);
    }
    const server = await startRedis({ port, password: '' });
    flow.after(() => server.close());
    await retries.put('b');
    for await (const task of retries.items()) {
      expect(task.payload).toBe('b');
      expect(await task.done()).toBe(true);
      break;
    }
    await scheduler.enqueue('c', 0);
    expect(await scheduler.takeDue()).toMatchObject([{ object: 'c' }]);
  });

  test('every call gets this error, and the first that reaches a Redis succeeds', async ({
    flow,
  }) => {
    const port = await freePort();
    const redis = `redis://127.0.0.1:${port}`;
    await using pw = new Piecework({ redis, queue: flow.queue });
    for (let round = 0; round < 3; round += 1) {
      const any = pw.request('any');
      const calls = {
        ...{ check: pw.check(), submit: pw.submit([1]), open: pw.open() },
        ...{ status: any.status(), completion: any.completion(), running: any.running() },
        ...{ results: firstOf(any.results()), progress: firstOf(any.progress()) },
        ...{ failures: firstOf(any.failures()), groups: any.failureGroups() },
        ...{ cancel: any.cancel(), drop: any.drop(), redrive: any.redrive() },
        ...{ pause: any.pause(), update: any.update({ limit: 1 }), counts: pw.admin.counts() },
      };
      for (const [name, call] of Object.entries(calls))
        expect(await thrownBy(call), name).toMatchObject(refusal);
    }
    const server = await startRedis({ port, password: '' });
    flow.after(() => server.close());
    await pw.check();
    const submitted = await pw.submit([1]);
    expect(submitted).toMatchObject({ created: true });
    const completion = submitted.completion();
    await flow.worker({ redis, handler: () => 1 }).start();
    expect(await completion).toMatchObject({ status: 'succeeded' });
  });

  test('the attempts of the calls leave no others behind', async ({ flow }) => {
    const connection = Connection.open(`redis://127.0.0.1:${await freePort()}`);
    flow.after(() => connection.close());
    const timers = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const most = timers() + 10;
    for (let call = 0; call < 30; call += 1)
      expect(await thrownBy(connection.check())).toMatchObject(refusal);
    expect(timers()).toBeLessThan(most);
  });

  test('also with a client that is passed in', async ({ flow }) => {
    const client = new Redis({ port: await freePort(), maxRetriesPerRequest: 1 });
    flow.after(() => client.disconnect());
    const connection = Connection.open(client);
    expect(await thrownBy(connection.check())).toMatchObject({
      code: 'CONNECTION',
      message: expect.stringMatching(/ECONNREFUSED .*: nothing listens there; /),
    });
    expect(client.listenerCount('error')).toBe(0);
  });

  test('also with one that would wait for ever: it did not connect, and nothing else is said', async ({
    flow,
  }) => {
    const client = new Redis({ port: await freePort(), maxRetriesPerRequest: null });
    flow.after(() => client.disconnect());
    let refusals = 0;
    client.on('error', () => {
      refusals += 1;
    });
    await until(() => refusals > 0);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    flow.after(() => vi.useRealTimers());
    const thrown = thrownBy(Connection.open(client).check());
    const before = refusals;
    // The timer of its next attempt is a real one.
    const giveUpMs = performance.now() + 60_000;
    while (refusals === before && performance.now() < giveUpMs)
      await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(((await thrown) as Error).message).toMatch(
      /^connect: no answer within 10 s from localhost:\d+: ECONNREFUSED .*: nothing listens there; /,
    );
  });
});

describe('Sentinels', () => {
  const ask = async (flow: Flow, sentinels: { host: string; port: number }[], name: string) => {
    const pw = new Piecework({ redis: { sentinels, name }, queue: flow.queue });
    await using _ = pw;
    const errors: unknown[] = [];
    for (const call of [() => pw.check(), () => pw.submit([1]), () => pw.request('x').completion()])
      errors.push(await thrownBy(call()));
    return errors;
  };

  test('of which none answers are named, at every call', async ({ flow }) => {
    const ports = [await freePort(), await freePort()];
    const sentinels = ports.map((port) => ({ host: '127.0.0.1', port }));
    const [one, two] = ports;
    for (const error of await ask(flow, sentinels, 'any'))
      expect(error).toMatchObject({
        ...{ name: 'ConnectionError', retryable: true },
        message: `connect: none of the Sentinels 127.0.0.1:${one}, 127.0.0.1:${two} answers; see that they run, and that hosts and ports are right`,
      });
  });

  test('that are plain Redis servers are reported as such', async ({ flow }) => {
    const server = await startOwnRedis();
    flow.after(() => server.close());
    const { port } = new URL(server.url);
    for (const error of await ask(flow, [{ host: '127.0.0.1', port: Number(port) }], 'any'))
      expect(error).toMatchObject({
        message: expect.stringMatching(/by the Sentinels 127\.0\.0\.1:\d+: .*no Sentinel, answers/),
      });
  });
});

describe('what is no Redis', () => {
  test('is named so, at every call', async ({ flow }) => {
    const http = createServer((_, response) => response.end('<html>'));
    await once(http.listen(0, '127.0.0.1'), 'listening');
    flow.after(() => http.close());
    const { port } = http.address() as AddressInfo;
    await using pw = new Piecework({ redis: `redis://127.0.0.1:${port}`, queue: flow.queue });
    for (let call = 0; call < 3; call += 1)
      expect(await thrownBy(pw.check())).toMatchObject({
        code: 'CONNECTION',
        message: expect.stringMatching(/what answers there is not Redis/),
      });
  });
});
