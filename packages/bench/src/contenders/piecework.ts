import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Contender, Session } from '../contender.js';
import type { Payload } from '../payloads.js';

/** Counters, permits, leases and results: nothing is left out. */
export const piecework: Contender = {
  title: 'Piecework',
  configuration:
    'one request; limit = concurrency; everything on (counters, permits, leases, results kept); read by `request.results()`',

  async open({ host, port, queue, concurrency, pieceworkRoot, handle }): Promise<Session> {
    // By path, so that two revisions can be measured by the same bench.
    const main = pathToFileURL(join(pieceworkRoot, 'packages/piecework/dist/index.js')).href;
    const { Piecework, Worker } = (await import(main)) as typeof import('piecework');
    const redis = `redis://${host}:${port}`;
    const pw = new Piecework({ redis, queue });
    const worker = new Worker({
      redis,
      queue,
      concurrency,
      handler: (payload) => handle(payload as Payload),
    });
    let id = '';
    return {
      startWorker: async () => {
        await worker.start();
      },
      submit: async (payloads) => {
        id = (await pw.submit(payloads, { limit: concurrency })).id;
      },
      readResults: async (tally) => {
        const request = pw.request(id);
        for await (const result of request.results({ failed: true })) {
          if (result.status !== 'succeeded') throw new Error(`sub-request ${result.index} failed`);
          tally.add(result.value);
        }
        const { status, counts } = await request.completion();
        if (status !== 'succeeded' || counts.succeeded !== tally.expected) {
          throw new Error(`the request ${status} with ${JSON.stringify(counts)}`);
        }
      },
      close: async () => {
        await worker.close();
        await pw.close();
      },
    };
  },
};
