import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { describe, expect } from 'vitest';
import { startWorker } from '../support/fleet.js';
import { type Flow, gate, mastersOf, RENEWAL_THREAD, test } from '../support/flow.js';
import { againstCluster } from '../support/redis.js';
import { until } from '../support/until.js';

/** Ids of the connections that renewal threads have to the one server. */
async function connected({ connection }: Flow): Promise<string[]> {
  const list = String(await mastersOf(connection)[0]?.client('LIST'));
  const threads = list.split('\n').filter((line) => line.includes('name=piecework-renewal'));
  return threads.map((line) => /id=(\d+)/.exec(line)?.[1] as string);
}

/** A worker that holds a permit until the gate opens. */
async function holding(flow: Flow, options: Partial<Parameters<Flow['worker']>[0]> = {}) {
  const hold = gate();
  const thread = { ...RENEWAL_THREAD, leaseMs: 12_000 };
  const worker = flow.worker({ ...thread, handler: () => hold.opened, ...options });
  await worker.start();
  const before = againstCluster ? [] : await connected(flow);
  const { id } = await flow.producer().submit([1]);
  await until(() => worker.running === 1);
  return { id, hold, worker, before };
}

/** Where the tests' Redis is, said with code: a function cannot be given to a thread. */
function byCode({ redis }: Flow) {
  const natMap = () => null;
  if (typeof redis !== 'string') {
    const { options } = redis as { options?: object };
    return { ...redis, options: { ...options, natMap } };
  }
  const { protocol, hostname, port, username, password } = new URL(redis);
  const tls = protocol === 'rediss:' ? { tls: {} } : {};
  return { host: hostname, port: Number(port), username, password, ...tls, natMap };
}

describe('the renewal thread', { tags: ['one-server'] }, () => {
  test('comes with the first permits and goes with the worker', async ({ flow }) => {
    const { id, hold, worker, before } = await holding(flow);
    expect(before).toEqual([]);
    await until(async () => (await connected(flow)).length === 1);
    expect(worker.health()).toMatchObject({ ready: true, why: [] });
    hold.open();
    await flow.complete(id);
    await worker.close();
    await until(async () => (await connected(flow)).length === 0);
  });

  test.for([
    ['of the same ioredis', (url: string) => new Redis(url)],
    ['of ioredis 5', (url: string) => new Redis5(url)],
  ] as const)('connects as the client %s that the worker was given', async ([, open], { flow }) => {
    const redis = open(flow.redis as string);
    const { id, hold, worker } = await holding(flow, { redis });
    await until(async () => (await connected(flow)).length === 1);
    hold.open();
    await flow.complete(id);
    await worker.close();
    redis.disconnect();
  });

  test('comes back by itself when it is cut off', async ({ flow }) => {
    const { id, hold, worker } = await holding(flow);
    const [first] = await until(async () => {
      const now = await connected(flow);
      return now.length === 1 && now;
    });
    await flow.connection.client.call('CLIENT', 'KILL', 'ID', String(first));
    await until(async () => {
      const [now] = await connected(flow);
      return now !== undefined && now !== first;
    });
    await until(() => worker.health().why.length === 0);
    hold.open();
    await flow.complete(id);
  });

  test('connects after a twelfth of the lease, not for work that ends before', async ({ flow }) => {
    const { id, hold, worker } = await holding(flow, { leaseMs: 3_600_000 });
    hold.open();
    await flow.complete(id);
    expect(await connected(flow)).toEqual([]);
    await worker.close();
  });

  test('stores why it gave up a lease once the server lets it', async ({ flow }) => {
    const server = flow.connection.client as Redis;
    const user = `renewal-${flow.queue}`;
    await server.call('ACL', 'SETUSER', user, 'on', '>secret', '~*', '&*', '+@all');
    flow.after(() => server.call('ACL', 'DELUSER', user));
    const redis = new URL(flow.redis as string);
    Object.assign(redis, { username: user, password: 'secret' });
    const options = { redis: redis.href, concurrency: 1, leaseMs: 6_000, maxBlockMs: 1_000 };
    const stuck = await startWorker(flow, { told: 'block' }, options);
    const producer = flow.producer();
    const { id } = await producer.submit([1]);
    await producer.close();
    await until(async () => (await stuck.noted('start')) === 1);
    // The one that calls scripts now is the thread.
    await server.call('ACL', 'SETUSER', user, '-evalsha');
    const refused = async () => {
      const log = JSON.stringify(await server.call('ACL', 'LOG', 100));
      return log.includes(user);
    };
    await until(refused, { what: 'a call of the thread was refused' });
    const noted = async () =>
      `cause:${stuck.id}` in ((await flow.request(id).inspect())?.state ?? {});
    expect(await noted()).toBe(false);
    await server.call('ACL', 'SETUSER', user, '+evalsha');
    await until(noted, { what: 'the thread has said why' });
    stuck.kill('SIGKILL');
  });

  test('is not there when none is wanted', async ({ flow }) => {
    const { id, hold, worker } = await holding(flow, { maxBlockMs: 0 });
    expect(await connected(flow)).toEqual([]);
    expect(worker.health().why).toEqual([]);
    hold.open();
    await flow.complete(id);
  });
});

test('a connection that is described by code is given to no thread, which health says', async ({
  flow,
}) => {
  const { id, hold, worker } = await holding(flow, { redis: byCode(flow) as never });
  const health = worker.health();
  expect(health).toMatchObject({ live: true, ready: true });
  expect(health.why).toEqual([
    expect.stringMatching(/renewal thread is down: .*could not be cloned/),
  ]);
  const said = flow.log.lines.filter(({ what }) => what.startsWith('no renewal thread'));
  expect(said).toHaveLength(1);
  hold.open();
  expect(await flow.complete(id)).toMatchObject({ succeeded: 1 });
});
