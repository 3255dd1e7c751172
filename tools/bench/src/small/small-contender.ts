import { FlowProducer, type Job, Queue, QueueEvents, Worker } from 'bullmq';
import * as thisPiecework from 'piecework';
import type { Payload } from '../payloads.js';

/** A Redis server as a client reaches it. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

interface Closable {
  close(): Promise<unknown>;
}

export interface Caller extends Closable {
  /** Submits one request and resolves to all its results, in any order; of what has failed, to the payload. */
  request(payloads: readonly Payload[]): Promise<readonly unknown[]>;
}

/** One attempt at a sub-request. `attempt`: its number, from 1. */
export type Handle = (payload: Payload, attempt: number) => Promise<number>;

/** A queue as callers of small requests use it. */
export interface SmallContender {
  readonly title: string;
  startWorker(address: Address, queue: string, slots: number, handle: Handle): Promise<Closable>;
  /** `attempts`: of each sub-request, without backoff. */
  openCaller(address: Address, queue: string, attempts: number): Promise<Caller>;
}

/** Piecework of a revision, by the module of its package. */
export const pieceworkOf = (module: Pick<typeof thisPiecework, 'Piecework' | 'Worker'>) => ({
  title: 'Piecework',

  async startWorker({ host, port }: Address, queue: string, concurrency: number, handle: Handle) {
    const redis = `redis://${host}:${port}`;
    const handler = (payload: unknown, { attempt }: thisPiecework.HandlerContext) =>
      handle(payload as Payload, attempt);
    return new module.Worker({ redis, queue, concurrency, handler }).start();
  },

  async openCaller({ host, port }: Address, queue: string, attempts: number): Promise<Caller> {
    const pw = new module.Piecework({ redis: `redis://${host}:${port}`, queue });
    return {
      async request(payloads) {
        const request = await pw.submit(payloads, { attempts });
        await request.completion();
        const values: unknown[] = [];
        for await (const result of request.results({ failed: true }))
          values.push(result.status === 'failed' ? payloads[result.index] : result.value);
        return values;
      },
      close: () => pw.close(),
    };
  },
});

/** A request is a job; its caller waits for the event of its end, which contains the result. */
const bullmqAdd: SmallContender = {
  title: 'BullMQ add',

  async startWorker(address, name, concurrency, handle) {
    return worker(name, address, concurrency, attemptBy(handle));
  },

  async openCaller(address, name, attempts) {
    const queue = new Queue<Payload>(name, { connection: connectionOf(address) });
    // Each call under way listens for its end: more than ten at a time would be warned of, at a cost.
    queue.setMaxListeners(0);
    const events = eventsOf(name, address);
    await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
    return {
      async request(payloads) {
        const add = (payload: Payload) => queue.add('job', payload, { attempts });
        const jobs = await Promise.all(payloads.map(add));
        const end = (job: Job<Payload>) => job.waitUntilFinished(events).catch(() => job.data);
        return Promise.all(jobs.map(end));
      },
      close: () => Promise.all([events.close(), queue.close()]),
    };
  },
};

/** A request is a parent, its sub-requests are the children; the result of the parent is theirs. */
const bullmqFlow: SmallContender = {
  title: 'BullMQ flow',

  async startWorker(address, name, concurrency, handle) {
    const workers = await Promise.all([
      worker(name, address, concurrency, attemptBy(handle)),
      worker(parentsOf(name), address, concurrency, async (job) =>
        Object.values(await job.getChildrenValues()),
      ),
    ]);
    return { close: () => Promise.all(workers.map((each) => each.close())) };
  },

  async openCaller(address, queueName, attempts) {
    const connection = connectionOf(address);
    const producer = new FlowProducer({ connection });
    producer.setMaxListeners(0);
    const events = eventsOf(parentsOf(queueName), address);
    await Promise.all([producer.waitUntilReady(), events.waitUntilReady()]);
    return {
      async request(payloads) {
        const opts = { attempts };
        const children = payloads.map((data) => ({ name: 'child', queueName, data, opts }));
        const parent = { name: 'parent', queueName: parentsOf(queueName), children };
        return (await producer.add(parent)).job.waitUntilFinished(events);
      },
      close: () => Promise.all([events.close(), producer.close()]),
    };
  },
};

const parentsOf = (queue: string) => `${queue}-parents`;
const connectionOf = (address: Address) => ({ ...address, maxRetriesPerRequest: null });
const attemptBy = (handle: Handle) => (job: Job<Payload>) => handle(job.data, job.attemptsMade + 1);

/** Reads from the beginning of the stream: by default, events before the first read are lost, and callers wait for ever. */
const eventsOf = (name: string, address: Address) =>
  new QueueEvents(name, { connection: connectionOf(address), lastEventId: '0' });

async function worker(
  name: string,
  address: Address,
  concurrency: number,
  processor: (job: Job) => Promise<unknown>,
): Promise<Worker> {
  const started = new Worker(name, processor, { connection: connectionOf(address), concurrency });
  // A connection that is being closed reports that.
  started.on('error', (error) => {
    if (error.message !== 'Connection is closed.') throw error;
  });
  await started.waitUntilReady();
  return started;
}

export const smallContenders = {
  piecework: pieceworkOf(thisPiecework) as SmallContender,
  'bullmq-add': bullmqAdd,
  'bullmq-flow': bullmqFlow,
};
export type SmallContenderName = keyof typeof smallContenders;
