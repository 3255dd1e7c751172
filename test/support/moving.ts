import type { EmbeddedCluster } from '@piecework/embedded';
import { Notifier, type NotifierOptions } from '@piecework/notifier';
import { Producer, type ProducerOptions } from '@piecework/producer';
import { Connection, QueueCommands } from '@piecework/protocol';
import { RequestCommands } from '@piecework/protocol/testing';
import { Worker, type WorkerOptions } from '@piecework/worker';
import type { ClusterOptions } from 'ioredis';
import { onTestFinished } from 'vitest';
import { ClusterOperator } from '../../tools/chaos/src/cluster/moves.js';
import { Log } from './flow.js';
import { freshName } from './given.js';
import { testCluster } from './redis.js';
import { until } from './until.js';

/*
 * A queue on the test cluster whose hash slots move and whose masters change while it is worked off.
 */

export interface Moving {
  readonly redis: { nodes: { host: string; port: number }[]; options: ClusterOptions };
  readonly queue: string;
  readonly connection: Connection;
  readonly operator: ClusterOperator;
  readonly log: Log;
  /** How often each sub-request ran: '<request> <index>' → times. */
  readonly runs: Map<string, number>;
  /** A started worker that counts what it runs. */
  worker(handler: WorkerOptions['handler'] & {}, options?: Partial<WorkerOptions>): Promise<Worker>;
  producer(options?: Partial<ProducerOptions>): Producer;
  notifier(options?: Partial<NotifierOptions>): Notifier;
  request(id: string): RequestCommands;
  /** Waits for the ends of all, and sees that each sub-request has one result and ran once. */
  allRight(requests: readonly { id: string; total: number }[], timeoutMs?: number): Promise<void>;
  /** Times each of several runs: those that ran more than once. */
  ranAgain(): string[];
}

/** A name whose hash slot is held by the master of this other one, or by another. */
export async function nameThere(
  operator: ClusterOperator,
  prefix: string,
  fits: (masterId: string, slot: number) => boolean,
): Promise<string> {
  for (let i = 0; ; i += 1) {
    const name = `${prefix}.${i}`;
    const slot = await operator.slotOf(name);
    if (fits((await operator.masterOf(slot)).id, slot)) return name;
  }
}

export interface MovingOptions {
  /** @default the cluster of the test file */
  readonly cluster?: Pick<EmbeddedCluster, 'nodes'>;
  /** How its nodes are reached. */
  readonly options?: ClusterOptions;
  /** The port of a node that announces another one. */
  readonly portOf?: (announced: number) => number;
}

export async function moving({
  cluster,
  options = {},
  portOf,
}: MovingOptions = {}): Promise<Moving> {
  const { nodes } = cluster ?? (await testCluster());
  const redis = { nodes: nodes.map(({ host, port }) => ({ host, port })), options };
  const queue = freshName('moving');
  const connection = Connection.open(redis);
  await connection.check();
  const operator = new ClusterOperator(redis.nodes, portOf);
  const log = new Log();
  const runs = new Map<string, number>();
  const opened: { close(): Promise<void> }[] = [];
  const own = <T extends { close(): Promise<void> }>(one: T): T => {
    opened.push(one);
    return one;
  };
  onTestFinished(async () => {
    await Promise.all(opened.map((one) => one.close()));
    operator.close();
    await connection.close();
  });
  const request = (id: string) => new RequestCommands(connection, id);
  const queueCommands = new QueueCommands(connection, queue);
  return {
    ...{ redis, queue, connection, operator, log, runs, request },
    worker: (handler, options) => {
      const worker = new Worker({
        ...{ redis, queue, logger: log as never, ...options },
        handler: (payload, context) => {
          const key = `${context.requestId} ${context.index}`;
          runs.set(key, (runs.get(key) ?? 0) + 1);
          return handler(payload, context);
        },
      });
      return own(worker).start();
    },
    producer: (options) => own(new Producer({ redis, queue, ...options })),
    notifier: (options) => own(new Notifier({ redis, queue, ...options })),
    allRight: async (requests, timeoutMs = 90_000) => {
      for (const { id, total } of requests) {
        await until(async () => (await request(id).state())?.status === 'complete', {
          timeoutMs,
          what: `${id} is complete`,
        });
        const state = await request(id).state();
        const records = (await request(id).results('-', 100_000)).flatMap((row) => row.records);
        const indexes = records.map(({ index }) => index).sort((a, b) => a - b);
        const expected = Array.from({ length: total }, (_, i) => i);
        if (JSON.stringify(indexes) !== JSON.stringify(expected))
          throw new Error(`${id} has results of ${indexes.join(' ')}`);
        if (state?.succeeded !== total) throw new Error(`${id} counts ${JSON.stringify(state)}`);
        await until(async () => !(await queueCommands.whereabouts(id)).open, {
          what: `${id} has left the queue side`,
        });
      }
    },
    ranAgain: () => [...runs].filter(([, times]) => times !== 1).map(([key]) => key),
  };
}
