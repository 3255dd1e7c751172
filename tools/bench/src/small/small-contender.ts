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
  /** Submits one request and resolves to all its results, in any order. */
  request(payloads: readonly Payload[]): Promise<readonly unknown[]>;
}

/** A queue as callers of small requests use it. */
export interface SmallContender {
  readonly title: string;
  startWorker(address: Address, queue: string, slots: number): Promise<Closable>;
  openCaller(address: Address, queue: string): Promise<Caller>;
}

const handle = async ({ n }: Payload) => n;

/** Piecework of a revision, by the module of its package. */
export const pieceworkOf = (module: Pick<typeof thisPiecework, 'Piecework' | 'Worker'>) => ({
  title: 'Piecework',

  async startWorker({ host, port }: Address, queue: string, concurrency: number) {
    const redis = `redis://${host}:${port}`;
    const handler = (payload: unknown) => handle(payload as Payload);
    return new module.Worker({ redis, queue, concurrency, handler }).start();
  },

  async openCaller({ host, port }: Address, queue: string): Promise<Caller> {
    const pw = new module.Piecework({ redis: `redis://${host}:${port}`, queue });
    return {
      async request(payloads) {
        const request = await pw.submit(payloads);
        (await request.completion()).throwIfFailed();
        const values: unknown[] = [];
        for await (const { value } of request.results()) values.push(value);
        return values;
      },
      close: () => pw.close(),
    };
  },
});

/** A request is a job; its caller waits for the event of its end, which contains the result. */
const bullmqAdd: SmallContender = {
  title: 'BullMQ add',

  async startWorker(address, name, concurrency) {
    return worker(name, address, concurrency, (job: Job<Payload>) => handle(job.data));
  },

  async openCaller(address, name) {
    const queue = new Queue<Payload>(name, { connection: connectionOf(address) });
    // Each call under way listens for its end: more than ten at a time would be warned of, at a cost.
    queue.setMaxListeners(0);
    const events = new QueueEvents(name, { connection: connectionOf(address) });
    await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
    return {
      async request(payloads) {
        const jobs = await Promise.all(payloads.map((payload) => queue.add('job', payload)));
        return Promise.all(jobs.map((job) => finished(job, events)));
      },
      close: () => Promise.all([events.close(), queue.close()]),
    };
  },
};

/** A request is a parent, its sub-requests are the children; the result of the parent is theirs. */
const bullmqFlow: SmallContender = {
  title: 'BullMQ flow',

  async startWorker(address, name, concurrency) {
    const workers = await Promise.all([
      worker(name, address, concurrency, (job: Job<Payload>) => handle(job.data)),
      worker(parentsOf(name), address, concurrency, async (job) =>
        Object.values(await job.getChildrenValues()),
      ),
    ]);
    return { close: () => Promise.all(workers.map((each) => each.close())) };
  },

  async openCaller(address, queueName) {
    const connection = connectionOf(address);
    const producer = new FlowProducer({ connection });
    producer.setMaxListeners(0);
    const events = new QueueEvents(parentsOf(queueName), { connection });
    await Promise.all([producer.waitUntilReady(), events.waitUntilReady()]);
    return {
      async request(payloads) {
        const children = payloads.map((data) => ({ name: 'child', queueName, data }));
        const parent = { name: 'parent', queueName: parentsOf(queueName), children };
        return finished((await producer.add(parent)).job, events);
      },
      close: () => Promise.all([events.close(), producer.close()]),
    };
  },
};

const LOST_MS = 5_000;

/**
 * The first read of QueueEvents begins at what is new by then, so events of the first jobs may be lost. Asked again, a job
 * that has ended answers at once.
 */
async function finished<Result>(job: Job<unknown, Result>, events: QueueEvents): Promise<Result> {
  for (;;) {
    try {
      return await job.waitUntilFinished(events, LOST_MS);
    } catch (error) {
      if (!String(error).includes('timed out before finishing')) throw error;
    }
  }
}

const parentsOf = (queue: string) => `${queue}-parents`;
const connectionOf = (address: Address) => ({ ...address, maxRetriesPerRequest: null });

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
  started.on('failed', (_, error) => {
    throw error;
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
