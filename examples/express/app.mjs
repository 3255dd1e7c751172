// Express: submits requests, streams their progress, downloads their results.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import express from 'express';
import {
  downloadHeaders,
  faultOf,
  problemOf,
  progressEvents,
  resultLines,
  SSE_HEADERS,
} from '../http/streams.mjs';
import { countWords } from '../http/task.mjs';

/**
 * @param pw an open `Piecework`; whoever opened it closes it
 * @param closing an `AbortSignal` that ends the streams, which would keep the server open
 */
export function createApp(pw, closing = new AbortController().signal) {
  const app = express();
  app.disable('x-powered-by');
  app.use(express.json({ limit: '1mb' }));

  app.post('/requests', async (req, res) => {
    const request = await pw.submit(req.body?.items, { task: countWords });
    res.status(202).location(`/requests/${request.id}`).json({ id: request.id });
  });

  app.get('/requests/:id', async (req, res) => {
    const { id, status, outcome, counts } = await pw.request(req.params.id).status();
    res.json({ id, status, outcome, counts });
  });

  app.get('/requests/:id/events', async (req, res) => {
    const request = pw.request(req.params.id);
    // An unknown request is a 404, which has to be known before the first event.
    await request.status();
    await stream(res, SSE_HEADERS, (signal) => progressEvents(request, { signal }));
  });

  app.get('/requests/:id/results', async (req, res) => {
    const request = pw.request(req.params.id);
    await request.status();
    await stream(res, downloadHeaders(request.id), (signal) => resultLines(request, { signal }));
  });

  // Four parameters: that is how Express recognises it.
  app.use((error, _req, res, _next) => {
    const fault = error.status < 500 ? undefined : faultOf(error);
    if (fault) console.error(fault);
    // The stream was cut, so that the client sees that it is not whole.
    if (res.headersSent) return res.destroy();
    // Errors of Express itself, such as JSON that cannot be parsed, have a status.
    const { status, body } = error.status
      ? { status: error.status, body: { code: 'BAD_REQUEST', message: error.message } }
      : problemOf(error);
    res.status(status).json(body);
  });
  return app;

  /** Sends a stream, no faster than the client reads, and ends it when the client goes away. */
  async function stream(res, headers, make) {
    const gone = new AbortController();
    res.once('close', () => gone.abort());
    res.set(headers).flushHeaders();
    const signal = AbortSignal.any([gone.signal, closing]);
    try {
      await pipeline(Readable.from(make(signal)), res);
    } catch (error) {
      if (!gone.signal.aborted) throw error;
    }
  }
}
