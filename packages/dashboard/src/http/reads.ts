import type { FastifyInstance } from 'fastify';
import type { QueueSource } from '../data/queue-source.js';
import type { Sources } from '../data/sources.js';
import { visitorOf } from '../security/access.js';
import { Refused } from '../security/refused.js';
import type { DashboardOptions } from '../shape/options.js';
import type { FailureDetail, ResultsPage, Shell } from '../shape/views.js';
import { failureParams, parse, queryOf, resultsParams } from './params.js';

/** Most answers that are being read of Redis at one time. */
const MOST_AT_ONCE = 8;

/** What a page asks for once: what it is allowed to do, and what stands behind a click. */
export function addReads(
  instance: FastifyInstance,
  sources: Sources,
  { allowControl = false }: DashboardOptions,
): void {
  const bounded = boundOf(MOST_AT_ONCE);
  instance.get('/api/shell', (request): Shell => {
    const { name, control = true } = visitorOf(request);
    return {
      queues: sources.queues,
      visitor: name,
      control: allowControl && control,
      payloads: sources.privacy.shows,
      beside: sources.hasBeside,
    };
  });

  instance.get('/api/results', (request): Promise<ResultsPage> => {
    const { queue, id, cursor } = parse(resultsParams, queryOf(request));
    return bounded(() => queueNamed(sources, queue).closely(id).results(cursor));
  });

  instance.get('/api/failure', async (request): Promise<FailureDetail> => {
    const { queue, id, index } = parse(failureParams, queryOf(request));
    const source = queueNamed(sources, queue);
    const found = await bounded(() => source.closely(id).failure(index));
    if (!found) throw new Refused(404, 'This sub-request has not failed, or runs again.');
    return found;
  });
}

/** @throws Refused 404 */
export function queueNamed(sources: Sources, name: string): QueueSource {
  const found = sources.queue(name);
  if (!found) throw new Refused(404, 'This dashboard does not show such a queue.');
  return found;
}

/** Refuses more than `most` calls at one time: a page repeats what it asked for, and Redis is not flooded. */
export function boundOf(most: number): <T>(call: () => Promise<T>) => Promise<T> {
  let running = 0;
  return async (call) => {
    if (running >= most) throw new Refused(503, 'Too much is asked at once; try again.');
    running += 1;
    try {
      return await call();
    } finally {
      running -= 1;
    }
  };
}
