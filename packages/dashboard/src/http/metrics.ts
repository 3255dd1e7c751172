import type { QueueMetrics } from '@piecework/metrics';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Sources } from '../data/sources.js';

type Pages = typeof import('@piecework/metrics');

/**
 * `/metrics` for Prometheus and `/scale` for scalers, behind the same authorization as the page: Prometheus has
 * `basic_auth` or `authorization` in its scrape configuration.
 */
export function addMetrics(instance: FastifyInstance, sources: Sources): void {
  let opened: Promise<{ readonly metrics: QueueMetrics; readonly pages: Pages }> | undefined;
  const open = async () => {
    // Loaded on demand: most dashboards are not scraped.
    const pages = await import('@piecework/metrics');
    const onError = (error: unknown, queue: string) => sources.onProblem(error, `queue ${queue}`);
    const queues = Object.fromEntries(
      sources.queues.flatMap((name) => {
        const source = sources.queue(name);
        return source ? [[name, source.pw.admin]] : [];
      }),
    );
    return { pages, metrics: new pages.QueueMetrics({ queues, onError }) };
  };
  const opening = () => {
    opened ??= open();
    return opened;
  };

  instance.get('/metrics', async (_request, reply) => {
    const { metrics } = await opening();
    return reply.type(metrics.contentType).send(await metrics.text());
  });

  instance.get('/scale', async (request: FastifyRequest, reply: FastifyReply) => {
    const { metrics, pages } = await opening();
    const query = new URLSearchParams(request.url.split('?')[1]);
    const { status, contentType, body } = await pages.scaleAnswer(metrics, query);
    return reply.code(status).type(contentType).send(body);
  });
}
