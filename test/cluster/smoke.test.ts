/**
 * A cluster.
 * @module-tag processes
 */
import { Producer } from '@piecework/producer';
import { Connection, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Worker } from '@piecework/worker';
import { expect, test } from 'vitest';
import { Log, mastersOf, numbers } from '../support/flow.js';
import { testCluster } from '../support/redis.js';
import { until } from '../support/until.js';

test('fifty requests are worked off on a cluster, over all of its masters', async () => {
  const { nodes } = await testCluster();
  const redis = { nodes: nodes.map(({ host, port }) => ({ host, port })) };
  const queue = 'cluster-smoke';
  const connection = Connection.open(redis);
  const commands = new QueueCommands(connection, queue);
  const log = new Log();
  const runs = new Map<string, number>();
  const workers = numbers(2).map(
    () =>
      new Worker({
        redis,
        queue,
        concurrency: 10,
        logger: log as never,
        handler: (n: number, { requestId, index }) => {
          const key = `${requestId} ${index}`;
          runs.set(key, (runs.get(key) ?? 0) + 1);
          return n * 2;
        },
      }),
  );
  await Promise.all(workers.map((worker) => worker.start()));
  const producer = new Producer({ redis, queue });
  const submitted = await Promise.all(
    numbers(50).map((n) => producer.submit(numbers(20 + n), { priority: n % 3, limit: 5 })),
  );
  // Each request lives where its id says; fifty of them are on every master.
  const over = async () => {
    const states = await Promise.all(
      submitted.map(({ id }) => new RequestCommands(connection, id).state()),
    );
    return states.every((state) => state?.status === 'complete' && state.outcome === 'succeeded');
  };
  await until(over, { timeoutMs: 45_000, what: 'all are worked off' });
  const perMaster = await Promise.all(
    mastersOf(connection).map(async (master) => (await master.keys('request:*')).length),
  );
  expect(perMaster).toHaveLength(3);
  expect(perMaster.every((count) => count > 0)).toBe(true);
  expect(perMaster.reduce((sum, count) => sum + count)).toBe(50);
  for (const { id, total } of submitted) {
    const request = new RequestCommands(connection, id);
    expect(await request.state()).toMatchObject({ succeeded: total, failed: 0, total });
    const records = (await request.results('-', 1_000)).flatMap((row) => row.records);
    expect(records.map(({ index }) => index).sort((a, b) => a - b)).toEqual(numbers(total));
    expect(records.every(({ index, value }) => Number(value) === 2 * index)).toBe(true);
  }
  expect([...runs.values()].every((times) => times === 1)).toBe(true);
  await until(async () => (await connection.client.hlen(commands.keys.open)) === 0);

  await Promise.all(workers.map((worker) => worker.close()));
  await producer.close();
  for (const { id, generation } of submitted) {
    await new RequestCommands(connection, id).drop();
    await commands.finish(id, generation, 'dropped');
  }
  for (const master of mastersOf(connection)) {
    const left = await master.keys('*');
    expect(left.filter((key) => !key.startsWith('request:'))).toEqual([]);
  }
  await connection.close();
  expect(log.lines.filter(({ level }) => level !== 'info')).toEqual([]);
});
