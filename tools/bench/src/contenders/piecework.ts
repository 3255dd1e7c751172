import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Contender, Session } from '../contender.js';
import type { Payload } from '../payloads.js';

/** By path, so that two revisions can be measured by the same bench. */
const load = async <Module>(root: string, file: string): Promise<Module> =>
  (await import(pathToFileURL(join(root, file)).href)) as Module;

/** The built package of a revision that is checked out at `root`. */
export const pieceworkIn = (root: string) =>
  load<typeof import('piecework')>(root, 'packages/piecework/dist/index.js');

function pieceworkWith(
  results: 'keep' | 'discard',
  title: string,
  read: string,
  measures = false,
): Contender {
  return {
    title,
    configuration: `one request; limit = concurrency; everything on (counters, permits, leases, results ${read}`,

    async open({ host, port, queue, concurrency, limit, pieceworkRoot, handle }): Promise<Session> {
      const { Piecework, Worker } = await pieceworkIn(pieceworkRoot);
      const redis = `redis://${host}:${port}`;
      const pw = new Piecework({ redis, queue });
      const handled: unknown[] = [];
      const keepsNone = async (payload: Payload) => {
        handled.push(await handle(payload));
      };
      const handler = results === 'keep' ? handle : keepsNone;
      const measured = measures ? { metrics: await metricsOf(pieceworkRoot) } : {};
      const worker = new Worker({ redis, queue, concurrency, handler, ...measured });
      let id = '';
      return {
        startWorker: async () => {
          await worker.start();
        },
        submit: async (payloads) => {
          id = (await pw.submit(payloads, { limit, results })).id;
        },
        readResults: async (tally) => {
          const request = pw.request(id);
          if (results === 'keep') {
            for await (const result of request.results({ failed: true })) {
              if (result.status !== 'succeeded') throw new Error(`${result.index} failed`);
              tally.add(result.value);
            }
          }
          const { status, counts } = await request.completion();
          if (status !== 'succeeded' || counts.succeeded !== tally.expected) {
            throw new Error(`the request ${status} with ${JSON.stringify(counts)}`);
          }
          for (const n of handled) tally.add(n);
        },
        close: async () => {
          await worker.close();
          await pw.close();
        },
      };
    },
  };
}

/** What the worker measures for Prometheus; nobody scrapes it. */
async function metricsOf(pieceworkRoot: string) {
  const file = 'packages/metrics/dist/worker.js';
  const { WorkerMetrics } = await load<typeof import('@piecework/metrics/worker')>(
    pieceworkRoot,
    file,
  );
  return new WorkerMetrics();
}

/** Counters, permits, leases and results: nothing is left out. */
export const piecework = pieceworkWith('keep', 'Piecework', 'kept); read by `request.results()`');

/** For what is compared with peers and floors that keep no results either. */
export const pieceworkDiscard = pieceworkWith(
  'discard',
  'Piecework, results discarded',
  'discarded); what the handler saw is counted after `request.completion()`',
);

/** As `piecework`, with metrics on. */
export const pieceworkMetrics = pieceworkWith(
  'keep',
  'Piecework, measured for Prometheus',
  'kept); read by `request.results()`; metrics on',
  true,
);
