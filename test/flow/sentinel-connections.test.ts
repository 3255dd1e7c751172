/**
 * Connections at a failover by Sentinel: they leave the former master before it is demoted, as whatever it acknowledges
 * after the promotion is lost.
 * @module-tag processes
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { startRedis } from '@piecework/embedded';
import { Notifier } from '@piecework/notifier';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { Admin } from 'piecework';
import { expect } from 'vitest';
import { STARTS, startCli } from '../support/cli.js';
import { type Flow, gate, RENEWAL_THREAD, test } from '../support/flow.js';
import { startWatched, type Watched } from '../support/sentinel.js';
import { until } from '../support/until.js';

const HOST = '127.0.0.1';
const LONG = { timeout: 300_000 };
const TEST = 'test';

async function watchedBy(flow: Flow, options: Parameters<typeof startWatched>[0] = {}) {
  const watched = await startWatched(options);
  flow.after(() => watched[Symbol.asyncDispose]());
  return watched;
}

/** A client of the test itself, which `seen` leaves out. */
function direct(flow: Flow, port: number): Redis {
  const client = new Redis({ host: HOST, port, connectionName: TEST });
  client.on('error', () => {});
  flow.after(() => client.disconnect());
  return client;
}

/** The names of the connections that neither the test, nor Sentinel, nor a replica has; and the role of the server. */
async function seen(server: Redis): Promise<{ names: string[]; role: string }> {
  const replies = await server.multi().client('LIST').call('ROLE').exec();
  const [list, role] = (replies ?? []).map(([, reply]) => reply) as [string, [string]];
  const lines = list.trim().split('\n');
  const others = lines.filter((line) => !/ name=(test|sentinel-\S*) | flags=[A-Z]*[SM]/.test(line));
  return { names: others.map((line) => / name=(\S*) /.exec(line)?.[1] ?? ''), role: role[0] };
}

/** The role that the server has when nobody is connected any more. */
async function roleWhenLeft(server: Redis): Promise<string> {
  return until(
    async () => {
      const { names, role } = await seen(server);
      return names.length === 0 && role;
    },
    { timeoutMs: 60_000, what: 'all connections have left the former master' },
  );
}

/** As `redis`: an ioredis client of the user's. */
function passedIn(flow: Flow, { input }: Watched, version = 6): Redis | Redis5 {
  const options = { ...input, connectionName: 'passed-in' };
  const client = version === 5 ? new Redis5(options) : new Redis(options);
  client.on('error', () => {});
  flow.after(() => client.disconnect());
  return client;
}

const urlOf = ({ input }: Watched) =>
  `redis-sentinel://${input.sentinels.map(({ host, port }) => `${host}:${port}`)}/${input.name}`;

/** How many connections to the Sentinel wait for its announcements. */
async function listening({ sentinel }: Watched): Promise<number> {
  const list = String(await sentinel.client('LIST'));
  return list.split('\n').filter((line) => line.includes('name=piecework-failovers')).length;
}

test(
  'every connection leaves a master that hands over before it is demoted',
  LONG,
  async ({ flow }) => {
    const watched = await watchedBy(flow);
    const redis = watched.input;
    const hold = gate();
    const work = { ...RENEWAL_THREAD, leaseMs: 6_000, concurrency: 2, handler: () => hold.opened };
    const worker = flow.worker({ redis, ...work });
    await worker.start();
    for (const version of [5, 6]) {
      const guest = flow.worker({ redis: passedIn(flow, watched, version), ...work });
      await guest.start();
    }
    const producer = flow.producer({ redis });
    const { id } = await producer.submit([1, 2, 3, 4, 5, 6], { limit: 6 });
    const notifier = new Notifier({ redis: passedIn(flow, watched, 5), queue: flow.queue });
    flow.after(() => notifier.close());
    const admin = new Admin({ redis, queue: flow.queue });
    flow.after(() => admin.close());
    const completion = notifier.completion(id, { timeoutMs: 120_000 });
    completion.catch(() => {});
    await admin.counts();
    const args = ['worker', '--redis', urlOf(watched), '--queue', `${flow.queue}-cli`];
    const process = startCli([...args, '--exec', 'cat', '--log-level', 'info']);
    flow.after(async () => {
      process.child.kill('SIGKILL');
      await process.finished;
    });
    const former = direct(flow, await watched.masterPort());
    await until(async () => {
      const { names } = await seen(former);
      const threads = names.filter((name) => name === 'piecework-renewal');
      return threads.length === 3 && names.includes('piecework-notifier') && names;
    }, STARTS);

    await watched.handOver();
    expect(await roleWhenLeft(former)).toBe('master');
    hold.open();
    await expect(completion).resolves.toMatchObject({ status: 'succeeded' });
    await admin.drop(id);
  },
);

test(
  'no connection is made to a master while another server is promoted',
  LONG,
  async ({ flow }) => {
    const watched = await watchedBy(flow);
    const producer = flow.producer({ redis: watched.input });
    await producer.submit([1], { id: flow.id('before') });
    const port = await watched.masterPort();
    const former = direct(flow, port);
    const calls = async () =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await former.info('commandstats'))?.[1]);
    const replica = watched.servers.find((one) => one.port !== port);
    await replica?.kill('SIGSTOP');
    const over = watched.handOver();
    over.catch(() => {});
    await until(async () => (await seen(former)).names.length === 0);
    const before = await calls();
    const submitted = producer.submit([1], { id: flow.id('meanwhile') });
    submitted.catch(() => {});
    await replica?.kill('SIGCONT');
    const next = direct(flow, await over);
    await submitted;
    expect(await calls()).toBe(before);
    expect(await next.exists(`request:{${flow.id('meanwhile')}}`)).toBe(1);
  },
);

test('a failover is noticed that no Sentinel could announce', LONG, async ({ flow }) => {
  const watched = await watchedBy(flow);
  const producer = flow.producer({ redis: watched.input });
  await producer.submit([1], { id: flow.id('before') });
  const former = direct(flow, await watched.masterPort());
  let over = false;
  const handingOver = watched.handOver().finally(() => {
    over = true;
  });
  while (!over) await watched.sentinel.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await handingOver;
  expect(await roleWhenLeft(former)).toBe('master');
});

test('a closed role leaves no connection to Sentinel', LONG, async ({ flow }) => {
  const watched = await watchedBy(flow);
  const client = passedIn(flow, watched);
  for (const redis of [watched.input, client]) {
    const producer = flow.producer({ redis });
    await producer.submit([1]);
    await until(async () => (await listening(watched)) === 1);
    await producer.close();
    await until(async () => (await listening(watched)) === 0);
  }
  expect(client.status).toBe('ready');
  const producer = flow.producer({ redis: client });
  await until(async () => (await listening(watched)) === 1);
  await client.quit();
  await until(async () => (await listening(watched)) === 0);
  await producer.close();
});

test('behind a fixed address, a server that lost its replicas is left', LONG, async ({ flow }) => {
  const start = async (...args: string[]) => {
    const settings = [...args, '--repl-diskless-sync-delay', '0'];
    const server = await startRedis({ password: '', args: settings });
    flow.after(() => server.close());
    return server.port;
  };
  const former = await start('--min-replicas-to-write', '1');
  const server = direct(flow, await start('--replicaof', HOST, String(former)));
  // A proxy that keeps its connections when it sends new ones elsewhere.
  let to = former;
  const sockets = new Set<Socket>();
  const proxy = createServer((near) => {
    const far = connect(to, HOST);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  proxy.listen(0, HOST);
  await once(proxy, 'listening');
  flow.after(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo;
  const producer = flow.producer({ redis: `redis://${HOST}:${port}` });
  await producer.submit([1], { id: flow.id('before') });

  await server.replicaof('NO', 'ONE');
  to = server.options.port as number;
  const before = direct(flow, former);
  // Until it notices, it takes writes.
  await until(async () => (await before.info('replication')).includes('connected_slaves:0'));
  await producer.submit([1], { id: flow.id('after') });
  expect(await server.exists(`request:{${flow.id('after')}}`)).toBe(1);
});
