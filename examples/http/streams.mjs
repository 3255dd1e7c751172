// What every web framework needs of a request: its progress as server-sent events, its results as a download, and
// the status code of an error. It knows no framework: copy this file.

const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/**
 * Server-sent events: `progress` every `everyMs` until the request is complete, then `end`. Aborting `signal`, as when
 * the client has gone, ends them at once.
 */
export async function* progressEvents(request, { signal, everyMs = 1_000 } = {}) {
  try {
    for await (const { counts, etaMs, waiting } of request.progress({ everyMs, signal }))
      yield event('progress', { counts, etaMs, waiting });
    const { status, counts } = await request.completion({ signal });
    yield event('end', { status, counts });
  } catch (error) {
    // The status line has been sent: an event is all that can still tell the client.
    if (!signal?.aborted) yield event('error', problemOf(error).body);
  }
}

/**
 * One line of JSON for each result, in the order of the items, as soon as it is there. Failed items have an `error`.
 * An error ends the stream without its last line, `{"done":true}`: a client that misses that has not got all. So does
 * aborting `signal`.
 */
export async function* resultLines(request, { signal } = {}) {
  try {
    for await (const item of request.results({ order: 'index', failed: true, signal })) {
      const { index, status } = item;
      const outcome =
        status === 'succeeded' ? { value: item.value } : { error: item.error.message };
      yield `${JSON.stringify({ index, status, ...outcome })}\n`;
    }
    yield '{"done":true}\n';
  } catch (error) {
    if (!signal?.aborted) throw error;
  }
}

/** The status code by the code of an error; what is not listed is a fault of the server. */
const STATUS = {
  INVALID_OPTION: 400,
  PAYLOAD: 400,
  NOT_FOUND: 404,
  EXPIRED: 410,
  DROPPED: 410,
  EXISTS: 409,
  CONNECTION: 503,
  // This server is ending.
  CLOSED: 503,
  FULL: 503,
  READ_ONLY: 503,
};

/** Status code and body of an error. Of an error that the client cannot mend, it does not tell the message. */
export function problemOf(error) {
  const status = STATUS[error?.code] ?? 500;
  const message = status < 500 ? error.message : 'try again later';
  return {
    status,
    body: { code: status < 500 || status === 503 ? error.code : 'INTERNAL', message },
  };
}

/**
 * What to log of an error: one line if Redis is away or full, the error with its stack if the server is wrong. Nothing
 * if the client is wrong, or this server is ending.
 */
export function faultOf(error) {
  const { status } = problemOf(error);
  if (status < 500 || error.code === 'CLOSED') return undefined;
  return status === 503 ? `${error.code}: ${error.message}` : error;
}

export const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // A proxy such as nginx would keep the events until its buffer is full.
  'x-accel-buffering': 'no',
};

export const downloadHeaders = (id) => ({
  'content-type': 'application/x-ndjson; charset=utf-8',
  'content-disposition': `attachment; filename="${id}.ndjson"`,
});
