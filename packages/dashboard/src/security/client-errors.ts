import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setHeaders } from './headers.js';
import { answerOf, bodyOf } from './refused.js';

/** Answers a request that is no HTTP, too large or too slow. An error that it threw would end the process. */
export function clientErrorHandler({ code }: NodeJS.ErrnoException, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const request = new IncomingMessage(socket);
  const response = new ServerResponse(request);
  try {
    response.assignSocket(socket);
  } catch {
    // The answer to a request before this one is under way: nothing may come into the middle of it.
    return void socket.destroy();
  }
  setHeaders(request, response);
  const status =
    code === 'HPE_HEADER_OVERFLOW' ? 431 : code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(bodyOf(answerOf({ statusCode: status }))), () => socket.destroy());
}
