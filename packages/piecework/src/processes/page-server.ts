import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { InvalidOptionError } from '@piecework/protocol/contract';

/** A page that a program reads, not a person. */
export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** What answers at which path. @param query what follows the `?` */
export type Pages = Readonly<Record<string, (query: URLSearchParams) => Answer | Promise<Answer>>>;

export interface PageServer extends AsyncDisposable {
  /** The port that it listens on. */
  readonly port: number;
  /** Ends all connections and frees the port. */
  close(): Promise<void>;
}

/** A JSON answer. */
export function json(status: number, value: object): Answer {
  return { status, contentType: 'application/json', body: `${JSON.stringify(value)}\n` };
}

/**
 * Serves pages on a port of its own.
 * @param at `port` 0: a free one. `host`: 127.0.0.1 by default
 * @throws InvalidOptionError when the port cannot be used
 */
export async function servePages(
  pages: Pages,
  { port, host = '127.0.0.1' }: { readonly port: number; readonly host?: string | undefined },
): Promise<PageServer> {
  const server = createServer((request, response) => {
    answerOf(pages, request).then(
      (answer) => send(response, answer),
      (error: unknown) => send(response, json(500, { error: messageOf(error) })),
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

async function answerOf(pages: Pages, { method, url = '' }: IncomingMessage): Promise<Answer> {
  if (method !== 'GET' && method !== 'HEAD') return json(405, { error: 'there are GET and HEAD' });
  const [path = '', query] = url.split('?');
  const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
  if (!page) return json(404, { error: `there are ${named(Object.keys(pages))}` });
  return page(new URLSearchParams(query));
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

const named = (paths: readonly string[]) =>
  new Intl.ListFormat('en', { style: 'long' }).format(paths);

function send(response: ServerResponse, { status, contentType, body }: Answer): void {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' });
  response.end(body);
}
