/**
 * A server whose memory comes to its end while workers settle.
 * @module-tag one-server
 * @module-tag processes
 */
import { Producer } from '@piecework/producer';
import { Connection } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { expect } from 'vitest';
import { type Flow, Log, numbers, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const MB = 1_000_000;
const SLOTS = 10;
const RESULT = 200_000;

/** A server of the test's own, and who works on it. */
async function crowded(flow: Flow) {
  const server = await startOwnRedis();
  const client = new Redis(server.url);
  const connection = Connection.open(client);
  const log = new Log();
  const producer = new Producer({ redis: server.url });
  const handler = (payload: string | number) =>
    typeof payload === 'number' ? 'x'.repeat(RESULT) : 'done';
  const worker = () => {
    const made = new Worker({
      redis: server.url,
      concurrency: SLOTS,
      handler,
      logger: log as never,
    });
    flow.after(() => made.close());
    return made;
  };
  flow.after(async () => {
    client.disconnect();
    await server.close();
  });
  flow.after(() => producer.close());
  const used = async () => {
    const info = await client.info('memory');
    return Number(/^used_memory:(\d+)/m.exec(info)?.[1]);
  };
  const succeeded = async (id: string) =>
    (await new RequestCommands(connection, id).state())?.succeeded ?? 0;
  return { server, client, connection, log, producer, worker, used, succeeded };
}

test('results that need more room than there is are waited with, and none is lost', {
  timeout: 120_000,
}, async ({ flow }) => {
  const { server, client, log, producer, worker, used, succeeded, connection } =
    await crowded(flow);
  const most = 24 * MB;
  await client.config('SET', 'maxmemory', most);
  await producer.submit(numbers(300), { id: 'kept', limit: 100 });
  let peak = 0;
  const watching = setInterval(async () => {
    peak = Math.max(peak, await used().catch(() => 0));
  }, 5);
  flow.after(() => clearInterval(watching));
  const [one, other] = [worker(), worker()];
  await one.start();
  await other.start();
  const warned = () => log.lines.filter(({ what }) => what.startsWith('Redis is nearly full'));
  await until(() => warned().length > 0, { what: 'a worker says so' });
  // What runs ends; then several holds pass, and nothing more is read.
  const request = new RequestCommands(connection, 'kept');
  const heldUntil = async () => Number((await request.inspect())?.state['heldUntil'] ?? 0);
  const heldAnew = async () => {
    const first = await heldUntil();
    await until(async () => (await heldUntil()) > first + 1_000, { what: 'it is held back anew' });
  };
  // What runs ends, and the server is less full when it has nothing to do: then nothing more is read.
  let before = -1;
  const stands = async () => {
    before = await succeeded('kept');
    await heldAnew();
    return (await succeeded('kept')) === before;
  };
  await until(stands, { timeoutMs: 60_000, what: 'it stands' });
  expect(before).toBeLessThan(300);
  const pw = new Piecework({ redis: server.url });
  flow.after(() => pw.close());
  const standing = await pw.request('kept').status();
  expect(standing).toMatchObject({ waitingFor: 'memory', heldUntil: expect.any(Number) });
  expect(standing.why).toMatch(/^Redis is (nearly )?full.*, and its results need room\. Raise max/);
  // Beyond 85 %: what ran, what waited meanwhile as nothing starts beyond a megabyte of it, and a settle for each
  // worker, of which the server holds copies meanwhile.
  const inHand = 2 * (SLOTS * RESULT + MB + RESULT);
  expect(await used()).toBeLessThanOrEqual(0.85 * most + inHand + 2 * 1.5 * MB);
  expect(peak).toBeLessThanOrEqual(0.85 * most + inHand + 2 * 5 * MB);
  // Once for each change, of which there are few, and each worker.
  expect(warned().length).toBeLessThanOrEqual(10);
  expect(one.health()).toMatchObject({ ready: true });
  expect(one.health().why.join()).toContain('is nearly full');

  await client.config('SET', 'maxmemory', 200 * MB);
  await until(async () => (await request.state())?.status === 'complete', { timeoutMs: 40_000 });
  expect(await request.state()).toMatchObject({ succeeded: 300, failed: 0 });
  expect(one.health().why).toEqual([]);
  const indexes = new Set<number>();
  for await (const { index } of pw.request('kept').results()) indexes.add(index);
  expect(indexes.size).toBe(300);
});

test('requests that free memory continue while one that needs memory waits, and that one when there is room', async ({
  flow,
}) => {
  const { client, log, producer, worker, used, connection } = await crowded(flow);
  const payloads = numbers(100).map(() => 'x'.repeat(RESULT));
  // Of both kinds: what is discarded, and what is smaller than its payload.
  await producer.submit(payloads, { id: 'discarded', limit: 5, results: 'discard' });
  await producer.submit(payloads, { id: 'smaller', limit: 5 });
  await producer.submit(numbers(30), { id: 'larger', limit: 5, priority: 10 });
  await client.config('SET', 'maxmemory', Math.round((await used()) / 0.95));
  await worker().start();
  for (const id of ['discarded', 'smaller', 'larger']) {
    const request = new RequestCommands(connection, id);
    await until(async () => (await request.state())?.status === 'complete', {
      timeoutMs: 40_000,
      what: `${id} is complete`,
    });
    expect(await request.state()).toMatchObject({ failed: 0, cancelled: 0 });
  }
  expect(log.lines.map(({ what }) => what)).toContainEqual(
    expect.stringMatching(/^Redis is nearly full/),
  );
});
