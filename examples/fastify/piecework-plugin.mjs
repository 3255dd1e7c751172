// Fastify: a plugin that submits requests, streams their progress and downloads their results.
import { Readable } from 'node:stream';
import { Piecework } from 'piecework';
import {
  downloadHeaders,
  faultOf,
  problemOf,
  progressEvents,
  resultLines,
  SSE_HEADERS,
} from '../http/streams.mjs';
import { countWords } from '../http/task.mjs';

/** @param options `redis`, as `new Piecework` takes it; the plugin closes it with Fastify */
export async function pieceworkPlugin(fastify, { redis }) {
  const pw = new Piecework({ redis });
  const closing = new AbortController();
  // Streams end first: open ones would keep the server open until their requests are complete.
  fastify.addHook('preClose', async () => closing.abort());
  fastify.addHook('onClose', () => pw.close());

  fastify.setErrorHandler((error, _request, reply) => {
    const fault = error.statusCode < 500 ? undefined : faultOf(error);
    if (fault) fastify.log.error(fault);
    // Errors of Fastify itself, such as JSON that cannot be parsed, have a status code.
    const { status, body } = error.statusCode
      ? { status: error.statusCode, body: { code: 'BAD_REQUEST', message: error.message } }
      : problemOf(error);
    return reply.code(status).send(body);
  });

  fastify.post('/requests', async ({ body }, reply) => {
    const { id } = await pw.submit(body?.items, { task: countWords });
    return reply.code(202).header('location', `/requests/${id}`).send({ id });
  });

  fastify.get('/requests/:id', async ({ params }) => {
    const { id, status, outcome, counts } = await pw.request(params.id).status();
    return { id, status, outcome, counts };
  });

  fastify.get('/requests/:id/events', async ({ params }, reply) => {
    const request = pw.request(params.id);
    // An unknown request is a 404, which has to be known before the first event.
    await request.status();
    return stream(reply, SSE_HEADERS, (signal) => progressEvents(request, { signal }));
  });

  fastify.get('/requests/:id/results', async ({ params }, reply) => {
    const request = pw.request(params.id);
    await request.status();
    const headers = downloadHeaders(request.id);
    return stream(reply, headers, (signal) => resultLines(request, { signal }));
  });

  /** Fastify sends the stream no faster than the client reads; here it also ends when the client goes away. */
  function stream(reply, headers, make) {
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, closing.signal]);
    return reply.headers(headers).send(Readable.from(make(signal)));
  }
}
