import {
  type FailureDetail,
  PATIENCE_MS,
  type QueueSource,
  type ResultsPage,
  type Shell,
} from '@piecework/views';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { WaitOptions } from 'piecework';
import type { Sources } from '../data/sources.js';
import { viewerOf, visitorOf } from '../security/access.js';
import { Refused } from '../security/refused.js';
import type { DashboardOptions } from '../shape/options.js';
import { failureParams, parse, queryOf, resultsParams } from './params.js';
import { Shares } from './shares.js';

/** Most answers that are being read of Redis at one time: for one viewer, and for all. */
const MOST_AT_ONCE = 4;
const MOST_AT_ONCE_OF_ALL = 32;

/** What a page asks for once: what it is allowed to do, and what stands behind a click. */
export function addReads(
  instance: FastifyInstance,
  sources: Sources,
  { allowControl = false }: DashboardOptions,
): void {
  const shares = new Shares(MOST_AT_ONCE, MOST_AT_ONCE_OF_ALL);
  const bounded = async <T>(
    request: FastifyRequest,
    call: (bounds: WaitOptions) => Promise<T>,
  ): Promise<T> => {
    const free = shares.take(viewerOf(request), 'You ask for too much at once; try again.');
    try {
      return await call({ signal: request.signal, timeoutMs: PATIENCE_MS });
    } finally {
      free();
    }
  };
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
    return bounded(request, (bounds) =>
      queueNamed(sources, queue).closely(id).results(cursor, bounds),
    );
  });

  instance.get('/api/failure', async (request): Promise<FailureDetail> => {
    const { queue, id, index } = parse(failureParams, queryOf(request));
    const source = queueNamed(sources, queue);
    const found = await bounded(request, (bounds) => source.closely(id).failure(index, bounds));
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
