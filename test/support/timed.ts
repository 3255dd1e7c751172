import { type Condition, Connection, TimedCommands, type TimedKind } from '@piecework/protocol';
import {
  RetryQueue,
  type RetryQueueOptions,
  Scheduler,
  type SchedulerOptions,
} from '@piecework/queues';
import { Cluster, type Redis } from 'ioredis';
import { test as base } from 'vitest';
import { asUser, EVERYBODY, makeUsers, nobodyDenied, userOf } from './acl.js';
import { nodesOf } from './flow.js';
import { freshName } from './given.js';
import { underAcl } from './mode.js';
import { keysNaming } from './own-keys.js';
import { sharedServer, testConnection } from './redis.js';
import { until } from './until.js';

/*
 * What tests of timed sets share: a name of its own for each test, schedulers and retry queues of that name,
 * the scripts themselves; and the check that nothing of it is left when the test is over.
 */

export interface Timed {
  readonly redis: Awaited<ReturnType<typeof testConnection>>;
  readonly name: string;
  readonly connection: Connection;
  scheduler<T>(options?: Partial<SchedulerOptions>): Scheduler<T>;
  retryQueue<T>(options?: Partial<RetryQueueOptions>): RetryQueue<T>;
  commands(kind?: TimedKind, condition?: Condition): TimedCommands;
  keys(): Promise<string[]>;
  /** Does `work` when the test is over. */
  after(work: () => unknown): void;
}

const connections = async ({ client }: Connection) =>
  ((await (client as Redis).client('LIST')) as string).trim().split('\n').length;

export const test = base.extend<{ timed: Timed }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest wants the pattern
  timed: async ({}, use) => {
    const address = await testConnection();
    const connection = Connection.open(address);
    await connection.check();
    const as = (user: string) => (underAcl ? asUser(address, user) : address);
    const redis = as(EVERYBODY);
    if (underAcl) await makeUsers(nodesOf(connection), '*');
    // What a condition calls is its own affair, and its rights are.
    const of = (role: 'scheduler' | 'retry-queue', options: Partial<SchedulerOptions>) =>
      options.condition ? address : as(userOf(role));
    const name = freshName('timed');
    const countable = !sharedServer && !(connection.client instanceof Cluster);
    const connected = countable ? await connections(connection) : 0;
    const opened: AsyncDisposable[] = [];
    const afterwards: (() => unknown)[] = [];
    const keep = <Actor extends AsyncDisposable>(actor: Actor): Actor => {
      opened.push(actor);
      return actor;
    };
    const keys = () => keysNaming(connection.client, name);
    try {
      await use({
        ...{ redis, name, connection, keys },
        scheduler: <T>(options = {}) =>
          keep(new Scheduler<T>({ redis: of('scheduler', options), name, ...options })),
        retryQueue: <T>(options = {}) =>
          keep(new RetryQueue<T>({ redis: of('retry-queue', options), name, ...options })),
        commands: (kind = 'schedule', condition) =>
          new TimedCommands(connection, kind, name, { condition }),
        after: (work) => afterwards.push(work),
      });
      for (const work of afterwards.reverse()) await work();
      await Promise.all(opened.map((one) => one[Symbol.asyncDispose]()));
      if (countable) {
        await until(async () => (await connections(connection)) <= connected, {
          what: 'the connections of the test are closed',
        });
      }
      await nothingLeft(connection, await keys());
      await nobodyDenied(nodesOf(connection));
    } finally {
      for (const key of await keys()) await connection.client.unlink(key);
      await connection.close();
    }
  },
});

/** @throws Error when a key is left that would never go, and is none of the queue's contents */
async function nothingLeft({ client }: Connection, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    if (/:(due|tasks|leases|clock|failures|condition:\w+)$/.test(key)) continue;
    if (!key.includes(':caller:') || (await client.pttl(key)) < 0)
      throw new Error(`${key} is left`);
  }
}
