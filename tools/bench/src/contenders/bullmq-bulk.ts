import { type Job, Queue, Worker } from 'bullmq';
import type { Contender, Session } from '../contender.js';
import type { Payload } from '../payloads.js';
import { deferred } from './deferred.js';

const PAGE = 1_000;

/**
 * N jobs without anything that knows when all are done: the end is told by the worker's own events,
 * which cost no call. The values are read from the completed jobs.
 */
export const bullmqBulk: Contender = {
  title: 'BullMQ addBulk',
  configuration: `\`Queue.addBulk\`, defaults; end seen by the worker’s local events; values read by \`getCompleted\`, ${PAGE} a page`,

  async open({ host, port, queue: name, concurrency, handle }): Promise<Session> {
    const connection = { host, port, maxRetriesPerRequest: null };
    const queue = new Queue<Payload>(name, { connection });
    let worker: Worker | undefined;
    let left = 0;
    const ended = deferred();
    await queue.waitUntilReady();
    return {
      startWorker: async () => {
        worker = new Worker(name, (job: Job<Payload>) => handle(job.data), {
          connection,
          concurrency,
        });
        worker.on('error', ended.reject);
        worker.on('failed', (_, error) => ended.reject(error));
        worker.on('completed', () => {
          left -= 1;
          if (left === 0) ended.resolve();
        });
        await worker.waitUntilReady();
      },
      submit: async (payloads) => {
        left = payloads.length;
        await queue.addBulk(payloads.map((data) => ({ name: 'job', data })));
      },
      readResults: async (tally) => {
        await ended.promise;
        for (let start = 0; start < tally.expected; start += PAGE) {
          const jobs = await queue.getCompleted(start, start + PAGE - 1);
          for (const job of jobs) tally.add(job.returnvalue);
        }
      },
      close: async () => {
        await worker?.close();
        await queue.close();
      },
    };
  },
};
