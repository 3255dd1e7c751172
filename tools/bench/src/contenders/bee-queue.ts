import BeeQueue from 'bee-queue';
import type { Contender, Session } from '../contender.js';
import type { Payload } from '../payloads.js';
import type { Tally } from '../tally.js';
import { deferred } from './deferred.js';

/** bee-queue keeps no results: they are only in the events, for listeners at that moment. */
export const beeQueue: Contender = {
  title: 'bee-queue',
  configuration:
    '`saveAll`; `storeJobs: false`, producer with `isWorker: false`, worker with `getEvents: false`; results are heard as `job succeeded` events (none are kept)',

  async open({ host, port, queue: name, concurrency, handle }): Promise<Session> {
    const redis = { host, port };
    const producer = new BeeQueue<Payload>(name, {
      redis,
      isWorker: false,
      sendEvents: false,
      storeJobs: false,
    });
    let worker: BeeQueue<Payload> | undefined;
    const values: unknown[] = [];
    const ended = deferred();
    let tally: Tally | undefined;
    const note = (value: unknown) => {
      // The first results come before anyone reads them.
      if (tally === undefined) values.push(value);
      else tally.add(value);
      if (tally?.count === tally?.expected && tally) ended.resolve();
    };
    producer.on('error', ended.reject);
    producer.on('job succeeded', (_, value) => {
      try {
        note(value);
      } catch (error) {
        ended.reject(error);
      }
    });
    producer.on('job failed', (_, error) => ended.reject(error));
    await producer.ready();
    return {
      startWorker: async () => {
        worker = new BeeQueue<Payload>(name, { redis, getEvents: false, storeJobs: false });
        worker.on('error', ended.reject);
        await worker.ready();
        worker.process(concurrency, (job: BeeQueue.Job<Payload>) => handle(job.data));
      },
      submit: async (payloads) => {
        const errors = await producer.saveAll(payloads.map((data) => producer.createJob(data)));
        for (const error of errors.values()) throw error;
      },
      readResults: async (into) => {
        tally = into;
        for (const value of values.splice(0)) note(value);
        await ended.promise;
      },
      close: async () => {
        await worker?.close();
        await producer.close();
      },
    };
  },
};
