/**
 * A cluster.
 * @module-tag processes
 */

import { type EmbeddedCluster, startCluster } from '@piecework/embedded';
import { Connection, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useTestClock } from '../support/clock.js';
import {
  back,
  create,
  failure,
  Hand,
  LEASE_MS,
  type Options,
  type Scene,
  success,
} from '../support/given.js';

/*
 * While a hash slot moves from one master to another, the one that gives it away refuses every
 * command on a key that it does not have: also inside a script, half-way, when the script itself has
 * just emptied that key. A call whose keys are not all there is refused as a whole before it begins,
 * and is sent again. So no script may touch a key after it took the last element out of it.
 */

useTestClock();

let cluster: EmbeddedCluster;
const clients: Redis[] = [];
const ids: string[] = [];
const connections: Connection[] = [];

beforeAll(async () => {
  cluster = await startCluster({ password: '', masters: 3, replicasPerMaster: 0 });
  for (const { host, port } of cluster.nodes) {
    const client = new Redis({ host, port });
    clients.push(client);
    connections.push(Connection.open(client));
    ids.push((await client.cluster('MYID')) as string);
  }
});

afterAll(async () => {
  for (const client of clients) client.disconnect();
  await cluster?.close();
});

let count = 0;

/**
 * A request that has all of its keys: 0 failed for good, 1 waits for its retry, 2 runs and reported
 * progress; sealed. Seen from the master that holds it, whose slot is then on its way.
 */
async function complete(
  options: Options = {},
): Promise<{ scene: Scene; worker: Hand; leave: () => Promise<void> }> {
  count += 1;
  const id = `moving-${count}`;
  const slot = await clients[0]!.cluster('KEYSLOT', id);
  const slots = await clients[0]!.cluster('SLOTS');
  const [, , master] = slots.find(([from, to]) => from <= slot && slot <= to)!;
  const at = ids.indexOf(master![2]);
  const to = (at + 1) % ids.length;
  const connection = connections[at]!;
  const scene: Scene = {
    id,
    generation: Date.now(),
    connection,
    queue: new QueueCommands(connection, 'unused'),
    request: new RequestCommands(connection, id),
  };
  await create(scene, { attempts: 2, limit: 9, ...options });
  await scene.request.append(scene.generation, 'maker', 0, ['a', 'b', 'c']);
  const worker = new Hand(scene);
  const [first, second] = await worker.hold(3);
  await worker.settle([failure(first!)], { running: 2 });
  await worker.take(1);
  await worker.settle([failure(first!), failure(second!, 60_000)], { running: 1 });
  await scene.request.seal(scene.generation, 'maker', 3);
  await scene.request.renew(scene.generation, 'worker', LEASE_MS, [2, 50]);
  return {
    scene,
    worker,
    leave: async () => {
      await clients[to]!.cluster('SETSLOT', slot, 'IMPORTING', ids[at]!);
      await clients[at]!.cluster('SETSLOT', slot, 'MIGRATING', ids[to]!);
    },
  };
}

const entry = ({ generation }: Scene, index: number) => ({ entry: `${generation}-${index}` });

/** The keys that exist; a missing one is not touched. */
async function keysOfSlot({ id, connection }: Scene): Promise<string[]> {
  const client = connection.client as Redis;
  const slot = await client.cluster('KEYSLOT', id);
  return ((await client.cluster('GETKEYSINSLOT', slot, 100)) as string[]).sort();
}

describe('while its hash slot is on its way', () => {
  it('a request whose last sub-requests end is complete, and leaves no key behind', async () => {
    const { scene, worker, leave } = await complete();
    await leave();
    const outcomes = [success(entry(scene, 1)), success(entry(scene, 2))];
    expect(await worker.trySettle(outcomes)).toEqual({ verdict: 'complete', outcome: 'failed' });
    const { failed, request, results } = scene.request.keys;
    expect(await keysOfSlot(scene)).toEqual([failed, request, results].sort());
  });

  it('a request whose retention is short is complete, and its stream names its generation', async () => {
    const { scene, worker, leave } = await complete({ retentionMs: 1_000 });
    await leave();
    const outcomes = [success(entry(scene, 1)), success(entry(scene, 2))];
    expect(await worker.trySettle(outcomes)).toMatchObject({ verdict: 'complete' });
    const { failed, request, results, work } = scene.request.keys;
    expect(await keysOfSlot(scene)).toEqual([failed, request, results, work].sort());
    const { client } = scene.connection;
    expect(await client.xlen(work)).toBe(0);
    expect(await client.xinfo('GROUPS', work)).toEqual([]);
    expect(await client.xinfo('STREAM', work)).toContain(`${scene.generation}-3`);
  });

  it('a worker that settles the last that waits and the last that reported gets its answer', async () => {
    const { scene, worker, leave } = await complete();
    await scene.connection.client.hset(scene.request.keys.request, 'status', 'open');
    await leave();
    const outcomes = [success(entry(scene, 1)), success(entry(scene, 2))];
    expect(await worker.trySettle(outcomes)).toMatchObject({ verdict: 'ok', dueNow: 0 });
    expect(await scene.request.state()).toMatchObject({ succeeded: 2, failed: 1 });
  });

  it('a worker that gives back and fails in one call gets its answer', async () => {
    const { scene, worker, leave } = await complete();
    await leave();
    const outcomes = [success(entry(scene, 1)), back(entry(scene, 2))];
    expect(await worker.trySettle(outcomes, { keep: 0 })).toMatchObject({
      verdict: 'ok',
      dueNow: 1,
    });
    expect(await scene.request.state()).toMatchObject({ succeeded: 1, failed: 1 });
  });

  it('a request is cancelled', async () => {
    const { scene, leave } = await complete();
    await leave();
    expect(await scene.request.cancel(scene.generation)).toEqual({
      verdict: 'cancelling',
      left: 0,
    });
    expect(await scene.request.state()).toMatchObject({ status: 'cancelling', cancelled: 1 });
  });

  it('a request is cancelled when nobody runs any of it', async () => {
    const { scene, worker, leave } = await complete();
    await worker.settle([back(entry(scene, 2))], { keep: 0 });
    await scene.request.renew(scene.generation, 'worker', LEASE_MS, []);
    await scene.connection.client.hset(scene.request.keys.progress, '2', '1');
    await leave();
    expect(await scene.request.cancel(scene.generation)).toMatchObject({ verdict: 'complete' });
    expect(await keysOfSlot(scene)).toHaveLength(3);
  });

  it('a request is dropped, and its tombstone stays', async () => {
    const { scene, leave } = await complete();
    await leave();
    expect(await scene.request.drop()).toMatchObject({ verdict: 'dropped' });
    expect(await keysOfSlot(scene)).toEqual([scene.request.keys.request]);
    expect(await scene.request.state()).toMatchObject({ status: 'dropped' });
  });

  it('a parked sub-request is taken', async () => {
    const { scene, worker, leave } = await complete();
    await scene.connection.client.zadd(scene.request.keys.due, 0, entry(scene, 1).entry);
    await leave();
    expect(await worker.take(1)).toMatchObject([{ index: 1, tries: 1 }]);
  });

  it('a request is tended', async () => {
    const { scene, leave } = await complete();
    await leave();
    expect(await scene.request.tend(scene.generation, '')).toMatchObject({ verdict: 'ok' });
  });

  it('a call whose keys are not all there is refused before it begins, and may be sent again', async () => {
    const { scene, worker, leave } = await complete();
    await scene.connection.client.del(scene.request.keys.progress);
    const before = await scene.connection.client.hgetall(scene.request.keys.request);
    await leave();
    await expect(worker.trySettle([success(entry(scene, 2))])).rejects.toMatchObject({
      retryable: true,
    });
    expect(await scene.connection.client.hgetall(scene.request.keys.request)).toEqual(before);
  });

  it('a producer and a tick receive an error to try again while keys are missing', async () => {
    const { scene, leave } = await complete();
    const { request, connection, generation } = scene;
    await connection.client.hset(request.keys.request, 'status', 'open');
    await connection.client.del(request.keys.due);
    await leave();
    const refused = { retryable: true };
    await expect(request.append(generation, 'maker', 3, ['d'])).rejects.toMatchObject(refused);
    await expect(request.tend(generation, '')).rejects.toMatchObject(refused);
    expect(await request.state()).toMatchObject({ total: 3, status: 'open' });
  });
});
