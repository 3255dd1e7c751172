/**
 * A queue of four shards on three masters, against one of a single hash slot.
 * @module-tag processes
 */
import {
  Connection,
  queueKeys,
  requestKeys,
  Shards,
  shardNames,
  shardOf,
} from '@piecework/protocol';
import { Worker } from '@piecework/worker';
import type { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { expect, test } from 'vitest';
import { Log, mastersOf, numbers } from '../support/flow.js';
import { moving } from '../support/moving.js';
import { testCluster } from '../support/redis.js';
import { until } from '../support/until.js';

const SHARDS = 4;
const REQUESTS = 60;

/** Commands that only the queue's side gets from clients. */
const OF_QUEUE = /^cmdstat_(?:b?lmpop):calls=(\d+)/gm;

const sum = (matches: Iterable<RegExpMatchArray>) => {
  let total = 0;
  for (const [, n] of matches) total += Number(n);
  return total;
};

const addressOf = ({ options }: Redis) => `${options.host}:${options.port}`;

/** Pops of each master, and what it has refused as spanning hash slots. */
async function statistics(masters: readonly Redis[]) {
  return Promise.all(
    masters.map(async (master) => ({
      pops: sum(String(await master.info('commandstats')).matchAll(OF_QUEUE)),
      crossed: sum(
        String(await master.info('errorstats')).matchAll(/^errorstat_CROSSSLOT:count=(\d+)/gm),
      ),
    })),
  );
}

/** How many keys and ids each master has of the queue while all of it waits; how many pops it had then. */
async function loadOf(redis: { nodes: { host: string; port: number }[] }, shards: number) {
  const connection = Connection.open(redis);
  await connection.check();
  const queue = `spread-${shards}`;
  const all = new Shards(connection, queue, shards);
  const pw = new Piecework({ redis, queue, shards });
  const log = new Log();
  const ids = numbers(REQUESTS).map((n) => `${queue}-${n}`);
  const masters = mastersOf(connection);
  const before = await statistics(masters);
  const runs = new Map<string, number>();
  const options = { redis, queue, shards, concurrency: 4, quantumMs: 1, logger: log as never };
  const handler = (_: number, { requestId, index }: { requestId: string; index: number }) => {
    const key = `${requestId} ${index}`;
    runs.set(key, (runs.get(key) ?? 0) + 1);
  };
  const workers = numbers(2).map(() => new Worker({ ...options, handler }));
  await Promise.all(ids.map((id, n) => pw.submit(numbers(10), { id, limit: 3, priority: n % 10 })));
  const holds = new Map<string, number>();
  for (const { keys } of all.all) {
    const address = await connection.addressOf(keys.open);
    const open = await connection.client.hlen(keys.open);
    holds.set(address, (holds.get(address) ?? 0) + open);
  }
  await Promise.all(workers.map((worker) => worker.start()));
  for (const id of ids) {
    const { status, counts } = await pw.request(id).completion();
    expect([status, counts.succeeded]).toEqual(['succeeded', 10]);
  }
  await until(async () => (await all.counts()).open === 0);
  expect((await all.workers()).map(({ id }) => id).sort()).toEqual(
    workers.map(({ id }) => id).sort(),
  );
  const after = await statistics(masters);
  await Promise.all(workers.map((worker) => worker.close()));
  for (const id of ids) await pw.admin.drop(id);
  for (const { keys } of all.all)
    expect(await connection.client.exists(keys.open, keys.agenda, keys.workers)).toBe(0);
  await pw.close();
  await connection.close();
  expect([...runs.values()].every((times) => times === 1)).toBe(true);
  expect(runs.size).toBe(10 * REQUESTS);
  expect(log.lines.filter(({ level }) => level !== 'info')).toEqual([]);
  const pops = after.map(({ pops }, i) => pops - (before[i]?.pops ?? 0));
  return {
    holds,
    pops: new Map(masters.map((master, i) => [addressOf(master), pops[i] ?? 0])),
    crossed: after.reduce((n, { crossed }) => n + crossed, 0),
  };
}

test('four shards share the load of their queue among the masters, and nothing crosses slots', async () => {
  const { nodes } = await testCluster();
  const redis = { nodes: nodes.map(({ host, port }) => ({ host, port })) };
  const one = await loadOf(redis, 1);
  const four = await loadOf(redis, SHARDS);
  expect([...one.pops.values()].filter((n) => n > 0)).toHaveLength(1);
  expect(one.holds.size).toBe(1);
  // Where the shards are follows from their names, and from how three masters share the hash slots.
  const masters = new Set(four.holds.keys());
  expect(masters.size).toBeGreaterThanOrEqual(2);
  const all = [...four.pops.values()].reduce((n, pops) => n + pops);
  for (const [address, pops] of four.pops) {
    if (!masters.has(address)) expect(pops).toBe(0);
    else expect(pops).toBeGreaterThan(0.1 * all);
  }
  expect(Math.max(...four.pops.values())).toBeLessThan(0.75 * all);
  expect(Math.max(...four.holds.values())).toBeLessThan(0.75 * REQUESTS);
  expect([one.crossed, four.crossed]).toEqual([0, 0]);
  expect(queueKeys('spread-4.0').open).toBe('{spread-4.0}:open');
  expect(new Set(numbers(REQUESTS).map((n) => shardOf(`spread-4-${n}`, SHARDS))).size).toBe(SHARDS);
}, 240_000);

test('a master that hangs holds up no shard of another one', async () => {
  const { nodes } = await testCluster();
  const redis = { nodes: nodes.map(({ host, port }) => ({ host, port })) };
  const connection = Connection.open(redis);
  await connection.check();
  const queue = 'hanging';
  const all = new Shards(connection, queue, SHARDS);
  const pw = new Piecework({ redis, queue, shards: SHARDS });
  const log = new Log();
  const handler = () => {};
  const options = { redis, queue, shards: SHARDS, concurrency: 1, quantumMs: 0 };
  const worker = new Worker({ ...options, logger: log as never, handler });
  await worker.start();
  // It has served all of them, and has a turn of each behind it.
  const warm = await Promise.all(numbers(12).map((n) => pw.submit([1, 2], { id: `warm-${n}` })));
  await Promise.all(warm.map((request) => request.completion()));

  const away = await connection.addressOf(all.of('any').keys.open);
  const ids: string[] = [];
  for (let n = 0; ids.length < 6; n += 1) {
    const id = `awake-${n}`;
    const sides = [all.of(id).keys.open, requestKeys(id).request];
    const at = await Promise.all(sides.map((key) => connection.addressOf(key)));
    if (!at.includes(away)) ids.push(id);
  }
  const master = mastersOf(connection).find((one) => addressOf(one) === away) as Redis;
  let hangs = true;
  const asleep = master.duplicate({ lazyConnect: false }).on('error', () => {});
  const slept = asleep.call('DEBUG', 'SLEEP', '12').then(() => {
    hangs = false;
  });
  // Something less urgent with many time slices, and others that come meanwhile.
  const [long = '', ...others] = ids;
  const first = await pw.submit(numbers(300), { id: long, priority: 60 });
  await Promise.all(others.map((id) => pw.submit([1, 2, 3], { id, priority: 10 })));
  for (const id of others) await pw.request(id).completion();
  expect(hangs).toBe(true);
  await slept;
  asleep.disconnect();
  await first.completion();
  await until(async () => (await all.counts()).open === 0);
  await worker.close();
  for (const id of [...ids, ...warm.map((one) => one.id)]) await pw.admin.drop(id);
  await pw.close();
  await connection.close();
  expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
}, 240_000);

test('a shard whose slot stays half moved holds up no other one', async () => {
  const scene = await moving();
  const { operator, queue } = scene;
  const [stuck = ''] = shardNames(queue, 2);
  const ids: string[] = [];
  for (let n = 0; ids.length < 40; n += 1)
    if (shardOf(`${queue}-${n}`, 2) === 1) ids.push(`${queue}-${n}`);
  const worker = await scene.worker(() => {}, { shards: 2, concurrency: 1 });
  const move = await operator.beginMove(await operator.slotOf(stuck));
  await until(() => worker.health().why.join().includes(`${stuck}: the hash slot`));
  /** How often the lists of that shard were looked through. */
  const looks = async () => {
    const info = await operator.at(move.to).info('commandstats');
    return Number(/^cmdstat_llen:calls=(\d+)/m.exec(info)?.[1] ?? 0) / 100;
  };
  const before = await looks();
  const producer = scene.producer({ shards: 2 });
  const notifier = scene.notifier({ shards: 2 });
  await Promise.all(ids.map((id) => producer.submit([1], { id })));
  await Promise.all(ids.map((id) => notifier.completion(id)));
  // With each goes a pause of up to half a second, in which the other shard has its turns.
  expect((await looks()) - before).toBeLessThan(ids.length / 2);
  while ((await move.step(10)) > 0);
  await move.finish();
  await until(() => worker.health().ready);
}, 240_000);
