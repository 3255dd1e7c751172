import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { InvalidOptionError } from '@piecework/protocol/contract';

/** What `GET /live` and `GET /ready` answer to an orchestrator, as JSON; with status 200 or 503. */
export interface Health {
  /** Whether the process works; if not, it should be restarted. */
  readonly live: boolean;
  /** Whether it takes work. */
  readonly ready: boolean;
  /** Why not, in words; empty when both are true. */
  readonly why: readonly string[];
}

export interface HealthServer extends AsyncDisposable {
  /** The port that it listens on. */
  readonly port: number;
  /** Ends all connections and frees the port. */
  close(): Promise<void>;
}

/**
 * Serves health on a port of its own.
 *
 * ```ts
 * await using health = await serveHealth(() => worker.health(), { port: 8080, host: '0.0.0.0' });
 * ```
 * @param ask `worker.health()`, `fleet.health()` or something of the same shape
 * @param at `port` 0: a free one. `host`: 127.0.0.1 by default
 * @throws InvalidOptionError when the port cannot be used
 */
export async function serveHealth(
  ask: () => Health | Promise<Health>,
  { port, host = '127.0.0.1' }: { port: number; host?: string },
): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      answer(response, 405, { error: 'there are GET and HEAD' });
      return;
    }
    if (path !== '/live' && path !== '/ready') {
      answer(response, 404, { error: 'there are /live and /ready' });
      return;
    }
    Promise.resolve()
      .then(ask)
      .then(
        (health) =>
          answer(response, health[path === '/live' ? 'live' : 'ready'] ? 200 : 503, health),
        (error: Error) =>
          answer(response, 503, { live: false, ready: false, why: [error.message] }),
      );
  });
  try {
    server.listen({ port, host });
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const wrong = new InvalidOptionError('port', port, `one that is free on ${host} (${code})`);
    throw Object.assign(wrong, { cause: error });
  }
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  const { port: listening } = server.address() as AddressInfo;
  return { port: listening, close, [Symbol.asyncDispose]: close };
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(body)}\n`);
}
