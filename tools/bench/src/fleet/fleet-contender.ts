import { Worker as BullWorker, FlowProducer } from 'bullmq';
import { Piecework, Worker } from 'piecework';
import type { Payload } from '../payloads.js';

/** A Redis server as a client reaches it. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

interface Closable {
  close(): Promise<unknown>;
}

export interface WorkerSetting extends Address {
  readonly queue: string;
  readonly slots: number;
  readonly handle: (payload: Payload) => Promise<number>;
}

export interface FleetProducer extends Closable {
  /** One request for each list. Resolves when Redis has all of them. */
  submit(requests: readonly Payload[][], limit: number): Promise<void>;
  /** Resolves when all that was submitted has ended. */
  completion(): Promise<void>;
  /** Calls `onResult` with the number of each result as soon as it is visible. Not every contender can do this. */
  readLive?(onResult: (n: number) => void): Promise<void>;
}

/** A queue as the figures `fleet` and `network` use it. */
export interface FleetContender {
  readonly title: string;
  startWorker(setting: WorkerSetting): Promise<Closable>;
  openProducer(address: Address, queue: string): Promise<FleetProducer>;
}

const piecework: FleetContender = {
  title: 'Piecework',

  async startWorker({ host, port, queue, slots, handle }) {
    const handler = (payload: unknown) => handle(payload as Payload);
    const redis = `redis://${host}:${port}`;
    return new Worker({ redis, queue, concurrency: slots, maxBlockMs: 0, handler }).start();
  },

  async openProducer({ host, port }, queue) {
    const pw = new Piecework({ redis: `redis://${host}:${port}`, queue });
    const ids: string[] = [];
    return {
      async submit(requests, limit) {
        for (const payloads of requests) ids.push((await pw.submit(payloads, { limit })).id);
      },
      async completion() {
        const ends = await Promise.all(ids.map((id) => pw.request(id).completion()));
        const bad = ends.find(({ status }) => status !== 'succeeded');
        if (bad) throw new Error(`a request ${bad.status}: ${JSON.stringify(bad.counts)}`);
      },
      async readLive(onResult) {
        const read = async (id: string) => {
          for await (const result of pw.request(id).results()) {
            if (result.status === 'succeeded') onResult(result.value as number);
          }
        };
        await Promise.all(ids.map(read));
      },
      close: () => pw.close(),
    };
  },
};

/** A request is a parent, its sub-requests are the children; the parent's processor returns at once. */
const bullmqFlow: FleetContender = {
  title: 'BullMQ flow',

  async startWorker({ host, port, queue, slots, handle }) {
    const worker = new BullWorker<Payload>(`${queue}-children`, ({ data }) => handle(data), {
      connection: { host, port, maxRetriesPerRequest: null },
      concurrency: slots,
      autorun: false,
    });
    worker.on('error', fail).on('failed', (_, error) => fail(error));
    await worker.waitUntilReady();
    void worker.run();
    return worker;
  },

  async openProducer({ host, port }, queue) {
    const connection = { host, port, maxRetriesPerRequest: null };
    const producer = new FlowProducer({ connection });
    const [queueName, parents] = [`${queue}-children`, `${queue}-parents`];
    let open = 0;
    let onEnd = () => {};
    const ended = new Promise<void>((resolve) => {
      onEnd = resolve;
    });
    const worker = new BullWorker(
      parents,
      async () => {
        open -= 1;
        if (open === 0) onEnd();
      },
      { connection },
    );
    worker.on('error', fail);
    await Promise.all([producer.waitUntilReady(), worker.waitUntilReady()]);
    return {
      async submit(requests) {
        open += requests.length;
        for (const payloads of requests) {
          const children = payloads.map((data) => ({ name: 'child', queueName, data }));
          await producer.add({ name: 'parent', queueName: parents, children });
        }
      },
      completion: () => ended,
      close: () => Promise.all([worker.close(), producer.close()]),
    };
  },
};

/** Without it a run would wait for ever. */
function fail(error: Error): void {
  // A connection that is being closed reports that.
  if (error.message === 'Connection is closed.') return;
  console.error(error);
  process.exit(1);
}

/** By the names that `--only` has for them. */
export const fleetContenders = { piecework, 'bullmq-flow': bullmqFlow };
export type FleetContenderName = keyof typeof fleetContenders;
export const fleetContenderNames = Object.keys(fleetContenders) as FleetContenderName[];
