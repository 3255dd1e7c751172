import { FlowProducer, type Job, Worker } from 'bullmq';
import type { Contender, Session } from '../contender.js';
import type { Payload } from '../payloads.js';
import { type Deferred, deferred } from './deferred.js';

/** A parent with N children: what BullMQ has for "do all of these, then continue with the values". */
export const bullmqFlow: Contender = {
  title: 'BullMQ flow',
  configuration:
    '`FlowProducer.add`: one parent, N children, defaults; the parent’s processor reads `getChildrenValues()`',

  async open({ host, port, queue, concurrency, handle }): Promise<Session> {
    const connection = { host, port, maxRetriesPerRequest: null };
    const producer = new FlowProducer({ connection });
    const values: Deferred<unknown[]> = deferred();
    const parents = `${queue}-parents`;
    const children = `${queue}-children`;
    const workers: Worker[] = [];
    await producer.waitUntilReady();
    return {
      startWorker: async () => {
        const ofChildren = new Worker(children, (job: Job<Payload>) => handle(job.data), {
          connection,
          concurrency,
        });
        const ofParents = new Worker(
          parents,
          async (job) => values.resolve(Object.values(await job.getChildrenValues())),
          { connection },
        );
        workers.push(ofChildren, ofParents);
        for (const worker of workers) worker.on('error', values.reject);
        ofChildren.on('failed', (_, error) => values.reject(error));
        ofParents.on('failed', (_, error) => values.reject(error));
        await Promise.all(workers.map((worker) => worker.waitUntilReady()));
      },
      submit: async (payloads) => {
        await producer.add({
          name: 'parent',
          queueName: parents,
          children: payloads.map((data) => ({ name: 'child', queueName: children, data })),
        });
      },
      readResults: async (tally) => {
        for (const value of await values.promise) tally.add(value);
      },
      close: async () => {
        await Promise.all(workers.map((worker) => worker.close()));
        await producer.close();
      },
    };
  },
};
