/**
 * Seals that wait for a replica, or for the disk.
 * @module-tag own-server
 * @module-tag processes
 */
import { DurabilityError, ServerError } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { describe, expect, type TestContext } from 'vitest';
import { type Flow, numbers, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

async function server(flow: Flow, settings: readonly string[] = []) {
  const started = await startOwnRedis(settings);
  flow.after(() => started.close());
  const client = new Redis(started.url);
  flow.after(() => client.disconnect());
  return { ...started, client };
}

/** A server and a replica of it that is up to date. */
async function replicated(flow: Flow) {
  const master = await server(flow);
  const port = new URL(master.url).port;
  const replica = await server(flow, ['--replicaof', '127.0.0.1', port]);
  await until(async () => /state=online/.test(await master.client.info('replication')), {
    timeoutMs: 30_000,
  });
  return { master, replica };
}

async function knowsWaitAof(client: Redis): Promise<boolean> {
  const [known] = (await client.command('INFO', 'WAITAOF')) as unknown[];
  return Boolean(known);
}

describe("durability 'replica'", () => {
  test('is confirmed by a replica that has the sealed request', async ({ flow }) => {
    const { master, replica } = await replicated(flow);
    const producer = flow.producer({ redis: master.url });
    const id = flow.id('safe');
    await producer.submit(numbers(1_200), { id, durability: 'replica' });
    // Without another word to the master: it is there when the submission resolves.
    await master.kill('SIGSTOP');
    const { request } = flow.request(id).keys;
    expect(await replica.client.hmget(request, 'status', 'total')).toEqual(['sealed', '1200']);
    await master.kill('SIGCONT');
  });

  test('is refused before anything is written where there is no replica', {
    tags: 'one-server',
  }, async ({ flow }) => {
    const options = { id: flow.id('alone'), durability: 'replica' as const };
    const refused = await flow
      .producer()
      .submit([1], options)
      .catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(ServerError);
    expect(refused).toMatchObject({ code: 'NO_REPLICA', retryable: false });
    await expect(flow.producer().open(options)).rejects.toMatchObject({ code: 'NO_REPLICA' });
    expect(await flow.keys()).toEqual([]);
  });

  test('that is not confirmed is an error, and a repetition confirms it', async ({ flow }) => {
    const { master, replica } = await replicated(flow);
    const producer = flow.producer({ redis: master.url });
    await replica.kill('SIGSTOP');
    const options = { id: flow.id('late'), durability: 'replica' as const };
    const late = await producer.submit(numbers(3), options).catch((thrown: unknown) => thrown);
    expect(late).toBeInstanceOf(DurabilityError);
    expect(late).toMatchObject({ code: 'DURABILITY', retryable: true, requestId: options.id });
    const { request } = flow.request(options.id).keys;
    expect(await master.client.hmget(request, 'status', 'total')).toEqual(['sealed', '3']);
    const open = await producer.open({ ...options, id: flow.id('open') });
    await open.append(1);
    await expect(open.seal()).rejects.toBeInstanceOf(DurabilityError);
    await replica.kill('SIGCONT');
    await open.seal();
    expect(await producer.submit(numbers(3), options)).toMatchObject({ total: 3 });
    expect(await replica.client.hget(request, 'status')).toBe('sealed');
    expect(await master.client.hget(request, 'total')).toBe('3');
  });
});

describe("durability 'fsync'", () => {
  const options = { durability: 'fsync' as const };

  test('is refused with what to change, before anything is written', async ({ flow }) => {
    const plain = await server(flow);
    const refused = await flow
      .producer({ redis: plain.url })
      .submit([1], options)
      .catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(ServerError);
    expect(refused).toMatchObject({ code: 'NO_FSYNC', retryable: false });
    const lacks = (await knowsWaitAof(plain.client)) ? 'appendonly' : '7.2';
    expect((refused as Error).message).toContain(lacks);
    expect(await plain.client.dbsize()).toBe(0);
  });

  /** A server that writes a file; without WAITAOF the test is skipped, and the report says why. */
  async function writing({
    flow,
    task,
    skip,
  }: Pick<TestContext, 'task' | 'skip'> & { flow: Flow }) {
    const kept = await server(flow, ['--appendonly', 'yes']);
    if (await knowsWaitAof(kept.client)) return kept;
    const reason = 'this server has no WAITAOF (Redis before 7.2)';
    task.meta.skipped = reason;
    return skip(reason);
  }

  /** How often the server was asked whether its file is on the disk. */
  async function asked(client: Redis): Promise<number> {
    const info = await client.info('commandstats');
    return Number(/^cmdstat_waitaof:calls=(\d+)/m.exec(info)?.[1] ?? 0);
  }

  test('is confirmed by a server that writes a file', async ({ flow, task, skip }) => {
    const kept = await writing({ flow, task, skip });
    const producer = flow.producer({ redis: kept.url });
    const { id } = await producer.submit(numbers(1_200), { ...options, id: flow.id('kept') });
    // Once whether it may be asked, once whether it is there.
    expect(await asked(kept.client)).toBe(2);
    const { request } = flow.request(id).keys;
    expect(await kept.client.hmget(request, 'status', 'total')).toEqual(['sealed', '1200']);
    const open = await producer.open({ ...options, id: flow.id('open') });
    await open.append(1);
    await open.seal();
    expect(await asked(kept.client)).toBe(4);
  });

  test('is refused before anything is written to a user without the right to WAITAOF', async ({
    flow,
    task,
    skip,
  }) => {
    const kept = await writing({ flow, task, skip });
    await kept.client.call('ACL', 'SETUSER', 'default', '-waitaof');
    await expect(flow.producer({ redis: kept.url }).submit([1], options)).rejects.toThrow(
      /waitaof/,
    );
    expect(await kept.client.dbsize()).toBe(0);
  });

  test('that is not confirmed is an error, and a repetition confirms it', async ({
    flow,
    task,
    skip,
  }) => {
    const kept = await writing({ flow, task, skip });
    // The file is written, and brought to the disk when the system likes.
    await kept.client.config('SET', 'appendfsync', 'no');
    const producer = flow.producer({ redis: kept.url });
    const late = { ...options, id: flow.id('late') };
    const unsure = await producer.submit(numbers(3), late).catch((thrown: unknown) => thrown);
    expect(unsure).toBeInstanceOf(DurabilityError);
    expect(unsure).toMatchObject({ code: 'DURABILITY', retryable: true, requestId: late.id });
    await kept.client.config('SET', 'appendfsync', 'always');
    expect(await producer.submit(numbers(3), late)).toMatchObject({ total: 3 });
    expect(await kept.client.hget(flow.request(late.id).keys.request, 'total')).toBe('3');
  });
});
