// What the route handlers share: answers of the Web's own types, which Next.js takes as they are.
import { faultOf, problemOf } from '../../http/streams.mjs';

/** Runs a route handler; an error becomes an answer. */
export const answering = (handle) => async (request, context) => {
  try {
    return await handle(request, context);
  } catch (error) {
    const { status, body } = problemOf(error);
    const fault = faultOf(error);
    if (fault) console.error(fault);
    return Response.json(body, { status });
  }
};

/** A response that sends what a generator yields, no faster than the client reads. */
export function streamed(chunks, headers) {
  const body = ReadableStream.from(chunks).pipeThrough(new TextEncoderStream());
  return new Response(body, { headers });
}
