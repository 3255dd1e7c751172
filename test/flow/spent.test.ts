import { type RedisInput, requestKeys } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Piecework } from 'piecework';
import { expect } from 'vitest';
import { test } from '../support/flow.js';
import { until } from '../support/until.js';

test('what keeps much and is dropped leaves nothing to be unlinked', async ({ flow }) => {
  const { client } = flow.connection;
  const maxResultBytes = 20_000_000;
  const worker = flow.worker({ handler: () => 'x'.repeat(17_000_000), maxResultBytes });
  await worker.start();
  const { id } = await flow.producer().submit([1], { retentionMs: 600_000 });
  await flow.complete(id);
  const { spent } = flow.queueCommands.keys;
  await until(async () => (await client.zcard(spent)) === 1);
  const request = new RequestCommands(flow.connection, id);
  const { generation } = (await request.drop()) as { generation: number };
  await flow.queueCommands.finish(id, generation, 'dropped');
  expect(await client.exists(spent)).toBe(0);
  // Who heard of the end long ago, and comes late to tell of it.
  await flow.queueCommands.finish(id, generation, 'succeeded', Date.now() + 600_000);
  expect(await client.exists(spent)).toBe(0);
  await worker.close();
});

test('what keeps much goes when its retention is over, before it would expire', async ({
  flow,
}) => {
  const { client } = flow.connection;
  const maxResultBytes = 20_000_000;
  const worker = flow.worker({ handler: () => 'x'.repeat(17_000_000), maxResultBytes });
  await worker.start();
  const retentionMs = 10_000;
  const { id } = await flow.producer().submit([1], { retentionMs });
  await flow.complete(id);
  const { request, failed, results } = requestKeys(id);
  // By itself it would stay for a minute more.
  expect(await client.pttl(results)).toBeGreaterThan(retentionMs + 30_000);
  await until(async () => (await client.exists(request, failed, results)) === 0, {
    timeoutMs: 40_000,
    what: 'the agenda unlinks it',
  });
  const { spent, counters, history, series } = flow.queueCommands.keys;
  await until(async () => (await client.zcard(spent)) === 0);
  await worker.close();
  // What its queue remembers of it, and what tells a late create.
  await client.unlink(counters, history, series);
  await client.unlink(requestKeys(id).work);
});

test('what keeps much and is redriven and dropped leaves nothing to be unlinked', async ({
  flow,
}) => {
  const { client } = flow.connection;
  const { spent, open } = flow.queueCommands.keys;
  const pw = new Piecework({ redis: flow.redis as RedisInput, queue: flow.queue });
  flow.after(() => pw.close());
  let fails = true;
  const handler = (n: number) => {
    if (n === 1 && fails) throw new Error('not yet');
    return 'x'.repeat(17_000_000);
  };
  const worker = flow.worker({ handler, maxResultBytes: 20_000_000 });
  await worker.start();
  const request = await pw.submit([0, 1], { retentionMs: 600_000 });
  expect(await request.completion()).toMatchObject({ counts: { failed: 1 } });
  await until(async () => (await client.zcard(spent)) === 1);
  fails = false;
  await request.redrive();
  expect(await request.completion()).toMatchObject({ counts: { succeeded: 2 } });
  await until(async () => (await client.hlen(open)) === 0);
  expect(await client.zcard(spent)).toBe(1);
  await request.drop();
  expect(await client.zcard(spent)).toBe(0);
  await worker.close();
});
