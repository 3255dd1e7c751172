import { queueKeys } from '@piecework/protocol';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { DelayedTasks, Piecework, Worker as PieceworkWorker } from 'piecework';
import type { Payload } from '../payloads.js';
import type { Address } from '../small/small-contender.js';

interface Closable {
  close(): Promise<unknown>;
}

export interface BulkQueue extends Closable {
  /** Adds some payloads as one unit: a task, a job or a request. Resolves when Redis has it. */
  add(payloads: readonly Payload[]): Promise<unknown>;
  startWorker(slots: number, handle: (payload: Payload) => Promise<number>): Promise<Closable>;
  /** Whether everything that was added has ended. */
  isDone(): Promise<boolean>;
}

/** A queue that gets many units first, and works them off afterwards. */
export interface BulkContender {
  readonly title: string;
  open(address: Address, queue: string): Promise<BulkQueue>;
}

const urlOf = ({ host, port }: Address) => `redis://${host}:${port}`;
const only = ([payload]: readonly Payload[]) => payload as Payload;

/** How many requests of the queue are open. */
function openCount(address: Address, queue: string) {
  const client = new Redis({ ...address });
  return {
    isDone: async () => (await client.hlen(queueKeys(queue).open)) === 0,
    close: () => client.disconnect(),
  };
}

const delayedTasks: BulkContender = {
  title: 'DelayedTasks',

  async open(address, queue) {
    const tasks = new DelayedTasks({ redis: urlOf(address) });
    const open = openCount(address, queue);
    return {
      add: (payloads) => tasks.executeLater(queue, 'task', [only(payloads)]),
      async startWorker(concurrency, handle) {
        const task = ([payload]: unknown[]) => handle(payload as Payload);
        const worker = tasks.worker({ queues: [queue], concurrency, handlers: { task } });
        await worker.start();
        return worker;
      },
      isDone: open.isDone,
      async close() {
        open.close();
        await tasks.close();
      },
    };
  },
};

const bullmqAdd: BulkContender = {
  title: 'BullMQ add',

  async open(address, name) {
    const connection = { ...address, maxRetriesPerRequest: null };
    const queue = new Queue<Payload>(name, { connection });
    await queue.waitUntilReady();
    return {
      add: (payloads) => queue.add('task', only(payloads)),
      async startWorker(concurrency, handle) {
        const worker = new Worker<Payload>(name, ({ data }) => handle(data), {
          ...{ connection, concurrency },
        });
        await worker.waitUntilReady();
        return worker;
      },
      async isDone() {
        return (await queue.getJobCountByTypes('waiting', 'active')) === 0;
      },
      close: () => queue.close(),
    };
  },
};

/** Requests with a limit and a priority of their own, or one without. */
const requests = (title: string, isSmall: boolean): BulkContender => ({
  title,

  async open(address, queue) {
    const redis = urlOf(address);
    const pw = new Piecework({ redis, queue });
    const open = openCount(address, queue);
    return {
      add(payloads) {
        const priority = Math.floor(Math.random() * 100);
        return pw.submit(payloads, isSmall ? { limit: 2, priority } : {});
      },
      startWorker: (concurrency, handle) =>
        new PieceworkWorker({
          ...{ redis, queue, concurrency },
          handler: (payload) => handle(payload as Payload),
        }).start(),
      isDone: open.isDone,
      async close() {
        open.close();
        await pw.close();
      },
    };
  },
});

export const bulkContenders = {
  'delayed-tasks': delayedTasks,
  'bullmq-add': bullmqAdd,
  'many-requests': requests('many requests', true),
  'one-request': requests('one request', false),
};
export type BulkContenderName = keyof typeof bulkContenders;
