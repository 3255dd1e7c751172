/**
 * What Piecework uses of ioredis beyond its documented interface: packages/protocol/src/redis/ioredis-internals. Each
 * part is proved against a real server or cluster, as an update of ioredis may change it without notice.
 */
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { type EmbeddedCluster, startCluster } from '@piecework/embedded';
import { Cluster, Command, Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../packages/embedded/dist/free-port.js';
import {
  catchAsking,
  endWithoutNodes,
  findNodesBy,
  namedNodes,
} from '../../packages/protocol/dist/redis/ioredis-internals/cluster-internals.js';
import {
  isRedirectedTooOften,
  messageWithCause,
  sentinelsFailed,
} from '../../packages/protocol/dist/redis/ioredis-internals/error-texts.js';
import { asFlat } from '../../packages/protocol/dist/redis/ioredis-internals/flat-arguments.js';
import {
  gatherWrites,
  sendGathered,
} from '../../packages/protocol/dist/redis/ioredis-internals/gathered-writes.js';
import {
  cancelReconnect,
  leaveOnce,
  selectedDb,
  unansweredCommands,
} from '../../packages/protocol/dist/redis/ioredis-internals/node-internals.js';
import { sendOnce } from '../../packages/protocol/dist/redis/ioredis-internals/send-once.js';
import { freshName } from '../support/given.js';
import { until } from '../support/until.js';

/** The version against which the internals were checked, without its patch number. */
const CHECKED = '6.0';

let cluster: EmbeddedCluster;
const open: (Redis | Cluster)[] = [];

const opened = <Client extends Redis | Cluster>(client: Client): Client => {
  client.on('error', () => {});
  open.push(client);
  return client;
};
const slotOf = (key: string) => new Command('get', [key]).getSlot();
const nodes = () => cluster.nodes.map(({ host, port }) => ({ host, port }));
const first = () => nodes()[0] as { host: string; port: number };
const names = (client: Redis) => unansweredCommands(client).map(({ name }) => name);

beforeAll(async () => {
  cluster = await startCluster({ password: '', masters: 2, replicasPerMaster: 0 });
});
afterEach(() => {
  for (const client of open.splice(0)) client.disconnect();
});
afterAll(() => cluster?.close());

test('the installed ioredis is the version that the internals were checked against', () => {
  const require = createRequire(new URL('../../packages/protocol/package.json', import.meta.url));
  const { version } = require('ioredis/package.json') as { version: string };
  const advice =
    `ioredis ${version} is installed, and Piecework uses internals of ${CHECKED}: see that the other tests of this ` +
    'file pass, read what changed in ioredis for each function in redis/ioredis-internals, then set CHECKED here';
  expect(version.split('.').slice(0, 2).join('.'), advice).toBe(CHECKED);
});

describe('a client of one server', () => {
  test('knows the db that was selected last', async () => {
    // Of a cluster node only db 0 can be selected.
    const client = opened(new Redis({ ...first(), db: 5, lazyConnect: true }));
    expect(selectedDb(client)).toBe(5);
    await client.connect();
    await client.select(0);
    expect(selectedDb(client)).toBe(0);
  });

  test('leaves a connection once, however often it is to reconnect', async () => {
    const client = leaveOnce(opened(new Redis({ ...first(), lazyConnect: true })));
    await client.connect();
    const { stream } = client;
    const before = stream.listenerCount('close');
    for (let i = 0; i < 20; i += 1) client.disconnect(true);
    expect(stream.listenerCount('close')).toBeLessThanOrEqual(before + 1);
    await until(() => client.status === 'ready' && client.stream !== stream);
  });

  test('lists the commands that were sent without an answer, and those that were not sent', async () => {
    const client = opened(new Redis({ ...first(), lazyConnect: true, enableReadyCheck: false }));
    const waits = client.ping();
    expect(names(client)).toContain('ping');
    await waits;
    expect(names(client)).toEqual([]);
    const { port } = first();
    const key = keyOf(port);
    client.blpop(key, 0).catch(() => {});
    await until(() => names(client).includes('blpop'));
    expect(unansweredCommands(client)[0]?.getSlot()).toBe(slotOf(key));
  });

  test('reconnects at a time that can be cancelled', async () => {
    const port = await freePort();
    const client = opened(new Redis({ port, lazyConnect: true, retryStrategy: () => 60_000 }));
    client.connect().catch(() => {});
    await until(() => client.status === 'reconnecting');
    const clear = vi.spyOn(globalThis, 'clearTimeout');
    cancelReconnect(client);
    expect(clear.mock.calls[0]?.[0]).toMatchObject({ hasRef: expect.any(Function) });
    clear.mockRestore();
  });

  test('does not repeat a command behind a new connection that was sent once', async () => {
    const client = opened(new Redis(first()));
    const key = keyOf(first().port);
    await client.ping();
    const popped = sendOnce(client, 'blpop', [key, 0]);
    await until(() => names(client).includes('blpop'));
    client.stream.destroy();
    expect(await popped).toBeUndefined();
    await client.rpush(key, 'stays');
    expect(await client.llen(key)).toBe(1);
  });

  test('lets a command keep its arguments instead of a copy', async () => {
    const client = opened(new Redis(first()));
    const key = keyOf(first().port);
    const args = asFlat(['SET', key, 7]);
    const command = new Command(
      'eval',
      asFlat(["return redis.call('SET', KEYS[1], ARGV[1])", 1, key, 7]),
    );
    expect(new Command('get', args).args).toBe(args);
    await client.sendCommand(command);
    expect(await client.get(key)).toBe('7');
  });

  test('sends what is called in one turn in one write, in the order of the calls', async () => {
    const client = opened(new Redis({ ...first(), lazyConnect: true }));
    gatherWrites(client);
    const write = vi.spyOn(Socket.prototype, 'write');
    await client.connect();
    const key = keyOf(first().port);
    await client.ping();
    write.mockClear();
    const calls = [client.set(key, 'a'), client.append(key, 'b')];
    // Of a promise of the same turn, and of one behind it.
    const later = Promise.resolve().then(() => client.append(key, 'c'));
    const last = later.then(() => {});
    await Promise.resolve();
    calls.push(client.append(key, 'd') as never);
    expect(write).not.toHaveBeenCalled();
    await Promise.all([...calls, last]);
    expect(write).toHaveBeenCalledTimes(1);
    expect(await client.get(key)).toBe('abcd');

    write.mockClear();
    const inBytes = [
      client.append(key, 'e'),
      client.append(key, Buffer.from('f')),
      client.append(key, 'g'),
    ];
    expect(write.mock.calls.map(([chunk]) => typeof chunk)).toEqual(['string', 'object']);
    await Promise.all(inBytes);
    expect(await client.get(key)).toBe('abcdefg');

    write.mockClear();
    const sent = client.append(key, 'h');
    sendGathered();
    expect(write).toHaveBeenCalledTimes(1);
    await sent;
    expect(write).toHaveBeenCalledTimes(1);
    write.mockRestore();
  });

  test('sends what was called in the turn of a disconnect, and gathers again when it reconnects', async () => {
    const client = opened(new Redis({ ...first(), lazyConnect: true }));
    gatherWrites(client);
    const write = vi.spyOn(Socket.prototype, 'write');
    await client.connect();
    const key = keyOf(first().port);
    const set = client.set(key, 'x').catch(() => {});
    client.disconnect();
    await set;
    const other = opened(new Redis(first()));
    await until(async () => (await other.get(key)) === 'x');
    await client.connect();
    await client.ping();
    write.mockClear();
    await Promise.all([client.ping(), client.ping()]);
    expect(write).toHaveBeenCalledTimes(1);
    write.mockRestore();
  });

  test('sends nothing of a turn whose connection broke, and a command that is sent once is not repeated', async () => {
    const client = opened(new Redis({ ...first(), lazyConnect: true }));
    gatherWrites(client);
    await client.connect();
    const key = keyOf(first().port);
    const once = sendOnce(client, 'append', [key, 'once']);
    const again = client.append(key, 'again');
    client.stream.destroy();
    expect(await once).toBeUndefined();
    expect(await again).toBe(5);
    expect(await client.get(key)).toBe('again');
  });

  test('says that no Sentinel was reached, and why', async () => {
    const port = await freePort();
    const sentinels = [{ host: '127.0.0.1', port }];
    const client = new Redis({ sentinels, name: 'm', lazyConnect: true, retryStrategy: null });
    const failed = new Promise<unknown>((resolve) => client.on('error', resolve));
    open.push(client);
    client.connect().catch(() => {});
    expect(sentinelsFailed(await failed)?.last).toMatch(/\w+/);
    expect(sentinelsFailed(new Error('other'))).toBeUndefined();
  });
});

/** A fresh key whose hash slot this node has. */
function keyOf(port: number): string {
  const [low, high] = port === nodes()[0]?.port ? [0, 8_191] : [8_192, 16_383];
  for (;;) {
    const key = freshName('internals');
    const slot = slotOf(key);
    if (slot >= low && slot <= high) return key;
  }
}

describe('a cluster client', () => {
  test('keeps the nodes that the user named', async () => {
    const client = opened(new Cluster([first()], { lazyConnect: true }));
    expect(namedNodes(client)).toMatchObject([first()]);
    await client.connect();
    expect(client.nodes()).toHaveLength(2);
    expect(namedNodes(client)).toMatchObject([first()]);
  });

  test('finds a node by the address that a network translates', async () => {
    const client = opened(new Cluster([first()], { maxRedirections: 1 }));
    await until(() => client.status === 'ready');
    const { host, port } = nodes()[1] as { host: string; port: number };
    const key = keyOf(port);
    // As after a MOVED that names an address to which there is no connection.
    const remember = () => {
      client.slots[slotOf(key)] = ['announced:1'];
    };
    findNodesBy(client, (address) => (address === 'announced:1' ? `${host}:${port}` : address));
    // What a client receives before it is ready it sends again to itself.
    for (const node of client.nodes()) await node.ping();
    const [there, elsewhere] = [true, false].map((wanted) =>
      client
        .nodes()
        .filter(({ options }) => (options.port === port) === wanted)
        .map((node) => vi.spyOn(node, 'sendCommand')),
    );
    remember();
    await client.set(key, 'x');
    const sets = (spies: typeof there) =>
      (spies ?? []).flatMap(({ mock }) => mock.calls.filter(([{ name }]) => name === 'set'));
    expect(sets(there)).toHaveLength(1);
    expect(sets(elsewhere)).toHaveLength(0);
  });

  test('sends what is called in one turn in one write to each node', async () => {
    const client = opened(new Cluster([first()], { lazyConnect: true }));
    gatherWrites(client);
    const write = vi.spyOn(Socket.prototype, 'write');
    await client.connect();
    const keys = nodes().flatMap(({ port }) => [keyOf(port), keyOf(port)]);
    await Promise.all(keys.map((key) => client.get(key)));
    write.mockClear();
    await Promise.all(keys.map((key) => client.set(key, 'x')));
    expect(write).toHaveBeenCalledTimes(nodes().length);
    write.mockRestore();
  });

  test('survives that the connection closes before the reply to ASKING', async () => {
    const client = opened(new Cluster([first()], { maxRedirections: 5 }));
    catchAsking(client);
    await until(() => client.status === 'ready');
    const [from, to] = nodes().map((node) => new Redis(node)) as [Redis, Redis];
    const key = keyOf(first().port);
    const [fromId, toId] = [await from.cluster('MYID'), await to.cluster('MYID')];
    await to.cluster('SETSLOT', slotOf(key), 'IMPORTING', String(fromId));
    await from.cluster('SETSLOT', slotOf(key), 'MIGRATING', String(toId));
    onTestFinished(async () => {
      for (const node of [from, to]) {
        await node.cluster('SETSLOT', slotOf(key), 'STABLE');
        node.disconnect();
      }
    });
    const rejected: unknown[] = [];
    const listener = (reason: unknown) => rejected.push(reason);
    process.on('unhandledRejection', listener);
    onTestFinished(() => {
      process.off('unhandledRejection', listener);
    });
    const { port } = nodes()[1] as { port: number };
    const there = client.nodes().find(({ options }) => options.port === port) as Redis;
    await there.ping();
    const send = there.sendCommand.bind(there);
    const sent: string[] = [];
    there.sendCommand = (command) => {
      sent.push(command.name);
      const reply = send(command);
      if (command.name === 'get') there.stream.destroy();
      return reply;
    };
    // Sent again over another connection.
    expect(await client.get(key)).toBeNull();
    expect(sent).toEqual(['asking', 'get']);
    await setImmediate();
    expect(rejected).toEqual([]);
  });

  test('ends when it has no node left', async () => {
    const port = await freePort();
    const clusterRetryStrategy = () => 60_000;
    const client = opened(new Cluster([{ host: '127.0.0.1', port }], { clusterRetryStrategy }));
    const waits = client.get('x').then(
      () => 'answered',
      () => 'failed',
    );
    await until(() => client.status === 'reconnecting');
    client.disconnect();
    endWithoutNodes(client);
    expect(client.status).toBe('end');
    expect(await waits).toBe('failed');
  });

  test('says that it was redirected too often, and what the last answer was', async () => {
    const client = opened(new Cluster([first()], { maxRedirections: 0 }));
    await until(() => client.status === 'ready');
    const { port } = nodes()[1] as { port: number };
    const key = keyOf(port);
    const { host, port: wrong } = first();
    client.slots[slotOf(key)] = [`${host}:${wrong}`];
    const error = await client.get(key).catch((thrown: unknown) => thrown);
    expect(isRedirectedTooOften(error)).toBe(true);
    expect(messageWithCause(error)).toMatch(/^MOVED \d+ /);
  });

  test('says beside its own error what the last node said', async () => {
    const port = await freePort();
    const client = opened(
      new Cluster([{ host: '127.0.0.1', port }], {
        lazyConnect: true,
        clusterRetryStrategy: () => null,
      }),
    );
    const errors: unknown[] = [];
    client.on('error', (error) => errors.push(error));
    errors.push(await client.connect().catch((thrown: unknown) => thrown));
    const said = errors.map(messageWithCause);
    expect(said.some((text) => /^Failed to refresh slots cache\. \S/.test(text))).toBe(true);
  });
});
