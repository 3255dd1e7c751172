import { Producer, type ProducerOptions } from '@piecework/producer';
import { Connection, QueueCommands, type RequestState } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Worker, type WorkerOptions } from '@piecework/worker';
import { Cluster, type Redis } from 'ioredis';
import { test as base } from 'vitest';
import { asEverybody, asUser, nobodyDenied, userOf } from './acl.js';
import { stateOf } from './compact.js';
import { freshName } from './given.js';
import { flowAlone, testMode, underAcl } from './mode.js';
import { foreignIds, keysOfTest } from './own-keys.js';
import { sharedServer, testConnection } from './redis.js';
import { until } from './until.js';

/*
 * What the flow tests share: a queue of its own per test, producers and workers on it, and the
 * check that none of it is left when the test is over.
 */

export type RedisAddress = Awaited<ReturnType<typeof testConnection>>;

/** Everything that a flow test plays with. */
export interface Flow {
  readonly redis: RedisAddress;
  readonly queue: string;
  readonly connection: Connection;
  /** An id for a request that no other test uses: `<queue>.<name>`. */
  id(name: string): string;
  readonly queueCommands: QueueCommands;
  producer(options?: Partial<ProducerOptions>): Producer;
  /** What the workers logged; a line of level error fails the test, unless the test empties it. */
  readonly log: Log;
  /** A worker that is not started. */
  worker(options: Omit<WorkerOptions, 'redis'> & Partial<WorkerOptions>): Worker;
  request(id: string): RequestCommands;
  /** Waits until the request is complete and has left the queue side. */
  complete(id: string, timeoutMs?: number): Promise<RequestState>;
  /** The results that are kept, in the order of settling: index → value. */
  results(id: string): Promise<Map<number, unknown>>;
  /** Keys that this test has made. */
  keys(): Promise<string[]>;
  /** Does `work` when the test has ended, before Redis is checked. */
  after(work: () => unknown): void;
}

/** Keeps what a worker logs from level warn on, instead of printing it. */
export class Log {
  readonly lines: { level: string; what: string; about: { err?: unknown } }[] = [];
  /** What was said at level debug. */
  readonly quiet: string[] = [];
  child(): Log {
    return this;
  }
  #keep(level: string, about: unknown, what = ''): void {
    this.lines.push({ level, what, about: about as { err?: unknown } });
  }
  trace(): void {}
  debug(_: unknown, what = ''): void {
    this.quiet.push(what);
  }
  info(): void {}
  warn(about: unknown, what?: string): void {
    this.#keep('warn', about, what);
  }
  error(about: unknown, what?: string): void {
    this.#keep('error', about, what);
  }
  fatal(about: unknown, what?: string): void {
    this.#keep('error', about, what);
  }
}

/** The servers that hold keys, as plain clients. */
export function mastersOf({ client }: Connection): Redis[] {
  return client instanceof Cluster ? client.nodes('master') : [client as Redis];
}

/** All servers, replicas too. */
export function nodesOf({ client }: Connection): Redis[] {
  return client instanceof Cluster ? client.nodes('all') : [client as Redis];
}

const statusOf = async (connection: Connection, key: string) =>
  (await stateOf(connection.client, key))['status'];

/**
 * A renewal thread costs more than most tests: it loads the client a second time. In plain runs only the workers have
 * the default whose test asks for it, and those in processes of their own; with users, TLS or a cluster all of them, as there
 * the thread has to connect as its worker does.
 */
export const RENEWAL_THREAD = { maxBlockMs: undefined };
const workerDefaults = testMode === 'embedded' && !flowAlone ? { maxBlockMs: 0 } : {};

/** How many connections there are to the one server; a cluster's come and go. */
async function connections(connection: Connection): Promise<number> {
  const list = (await (connection.client as Redis).client('LIST')) as string;
  return list.trim().split('\n').length;
}

export const test = base.extend<{ flow: Flow }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest wants the pattern
  flow: async ({}, use) => {
    const address = await testConnection();
    const connection = Connection.open(address);
    await connection.check();
    const as = (user: string) => (underAcl ? asUser(address, user) : address);
    const redis = await asEverybody(address, nodesOf(connection));
    const countable = !sharedServer && !(connection.client instanceof Cluster);
    const connected = countable ? await connections(connection) : 0;
    const queue = freshName('flow');
    const keys = () => keysOfTest(connection.client, queue);
    const queueCommands = new QueueCommands(connection, queue);
    const opened: AsyncDisposable[] = [];
    const afterwards: (() => unknown)[] = [];

    const log = new Log();
    const flow: Flow = {
      redis,
      log,
      queue,
      connection,
      queueCommands,
      producer: (options) => {
        const producer = new Producer({ redis: as(userOf('producer')), queue, ...options });
        opened.push(producer);
        return producer;
      },
      worker: (options) => {
        const worker = new Worker({
          redis: as(userOf('worker')),
          queue,
          logger: log as never,
          ...workerDefaults,
          ...options,
        });
        opened.push(worker);
        return worker;
      },
      request: (id) => new RequestCommands(connection, id),
      // Long before the test is over time, and longer than what was lost needs to be found.
      complete: async (id, timeoutMs = 60_000) => {
        const state = await until(
          async () => {
            const now = await new RequestCommands(connection, id).state();
            return now?.status === 'complete' && now;
          },
          { timeoutMs, what: `request ${id} is complete` },
        );
        await until(async () => !(await queueCommands.whereabouts(id)).open, {
          what: `request ${id} has left the queue side`,
        });
        return state;
      },
      results: async (id) => {
        const found = new Map<number, unknown>();
        for (const { records } of await new RequestCommands(connection, id).results('-', 100_000)) {
          for (const { index, failed, value } of records) {
            if (found.has(index)) throw new Error(`index ${index} was settled twice`);
            found.set(index, failed ? { failed: true } : value && JSON.parse(value));
          }
        }
        return found;
      },
      id: (name) => `${queue}.${name}`,
      keys,
      after: (work) => afterwards.push(work),
    };
    await use(flow);
    try {
      for (const work of afterwards.reverse()) await work();
      await Promise.all(opened.map((one) => one[Symbol.asyncDispose]()));
      await dropAll(connection, await keys());
      await nothingLeft(connection, await keys(), connected);
      const [error] = log.lines.filter(({ level }) => level === 'error');
      if (error) throw new Error(`a worker logged: ${error.what}`, { cause: error.about.err });
      await nobodyDenied(nodesOf(connection));
    } finally {
      // The next test is not to suffer from this one.
      for (const key of await keys()) await connection.client.unlink(key);
      await connection.close();
    }
  },
});

/** Drops the requests among `keys`. */
async function dropAll(connection: Connection, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const id = /^request:\{(.+)\}$/.exec(key)?.[1];
    if (!id) continue;
    const dropped = await new RequestCommands(connection, id).drop();
    if (dropped.verdict === 'gone') continue;
    const queue = new QueueCommands(connection, dropped.queue);
    await queue.finish(id, dropped.generation, 'dropped');
  }
}

/** @throws Error when a key is left that is no tombstone, or a connection */
async function nothingLeft(
  connection: Connection,
  keys: readonly string[],
  connected: number,
): Promise<void> {
  const foreign = sharedServer ? foreignIds(keys) : [];
  if (foreign.length > 0) throw new Error(`ids that are not of flow.id(): ${foreign.join(' ')}`);
  const left: string[] = [];
  for (const key of keys) {
    const tombstone =
      key.startsWith('request:') &&
      /^(dropped|void)$/.test(String(await statusOf(connection, key)));
    if (!tombstone) left.push(key);
  }
  if (left.length > 0) throw new Error(`the test left keys behind: ${left.join(' ')}`);
  if (connected === 0) return;
  await until(async () => (await connections(connection)) <= connected, {
    what: 'the connections of the test are closed',
  });
}

/** Waits until so many workers hear the control channel of the queue. */
export async function heard({ connection, queueCommands }: Flow, workers = 1): Promise<void> {
  const { control } = queueCommands.keys;
  await until(async () => {
    const replies = await Promise.all(
      mastersOf(connection).map((master) => master.call('PUBSUB', 'SHARDNUMSUB', control)),
    );
    return (
      replies.reduce((sum: number, reply) => sum + Number((reply as unknown[])[1]), 0) === workers
    );
  });
}

/** A promise that others settle. */
export function gate<T = void>(): { opened: Promise<T>; open: (value: T) => void } {
  let open!: (value: T) => void;
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

export const numbers = (n: number, from = 0): number[] =>
  Array.from({ length: n }, (_, i) => from + i);

/** Somebody who took all sub-requests and died: his lease is over at once. */
export async function deadHolder(flow: Flow, id: string): Promise<void> {
  const commands = flow.request(id);
  const { generation } = (await commands.state()) as { generation: number };
  const entered = await commands.enter({
    generation,
    worker: 'dead',
    op: 1,
    want: 9,
    leaseMs: 1,
    tasks: '*',
    epochs: ['1'],
  });
  if (entered.verdict !== 'ok') throw new Error(`enter: ${entered.verdict}`);
  await commands.read('dead', entered.permits);
  await flow.queueCommands.scheduleTend(id, generation, 0);
}
