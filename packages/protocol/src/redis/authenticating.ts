import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import { ServerError } from '../contract/errors.js';
import type { Credentials, KnownCredential } from './credentials.js';

/*
 * ioredis reads user and password when a connection begins, before anything asynchronous can replace them. So a client
 * with `credentials` has none of its own: its connector asks for them, connects, authenticates, and hands over the
 * connection, which needs no AUTH any more. `Connector` is an option that ioredis documents; clients that are duplicated
 * and the nodes of a cluster inherit it.
 */

type ConnectorClass = NonNullable<RedisOptions['Connector']>;

/** What we use of a connector. */
interface Connecting {
  connecting: boolean;
  firstError?: Error;
  connect(emit: (type: string, error: Error) => void): Promise<Socket>;
}

const ours = new WeakSet<object>();

/** Whether this `Connector` of a client's options was made here. */
export const isAuthenticating = (connector: unknown): boolean =>
  typeof connector === 'function' && ours.has(connector);

/** A connector that connects as `Base` does, and then authenticates. */
export function authenticating(Base: ConnectorClass, credentials: Credentials): ConnectorClass {
  const Plain = Base as unknown as new (options: unknown) => Connecting;
  class AuthenticatingConnector extends Plain {
    readonly #timeoutMs: number;

    constructor(options: unknown) {
      super(options);
      this.#timeoutMs = (options as RedisOptions).connectTimeout ?? 10_000;
    }

    override async connect(emit: (type: string, error: Error) => void): Promise<Socket> {
      this.connecting = true;
      const credential = await credentials.get().catch((error: Error) => error);
      if (!this.connecting) return new Socket().destroy();
      if (credential instanceof Error) return this.#failed(new Socket(), credential);
      const stream = await super.connect(emit);
      try {
        await authenticate(stream, credential, this.#timeoutMs);
      } catch (error) {
        return this.#failed(stream, error as Error);
      }
      return stream;
    }

    /** A client whose connector rejects does not try again; one whose connection is closed does. */
    #failed(stream: Socket, error: Error): Socket {
      this.firstError = error;
      return stream.destroy();
    }
  }
  ours.add(AuthenticatingConnector);
  return AuthenticatingConnector as unknown as ConnectorClass;
}

/** Servers without a password answer this; ioredis accepts it too. */
const NEEDS_NONE = /no password is set|without any password configured/;

async function authenticate(
  stream: Socket,
  { username, password }: KnownCredential,
  milliseconds: number,
): Promise<void> {
  if (stream.destroyed) return;
  const connected = stream instanceof TLSSocket ? 'secureConnect' : 'connect';
  const send = () => stream.write(inProtocol('AUTH', username, password));
  if (stream.connecting) stream.once(connected, send);
  else send();
  const said = await pTimeout(replyOf(stream), {
    milliseconds,
    message: new Error('connect ETIMEDOUT'),
  });
  if (!said.startsWith('-') || NEEDS_NONE.test(said)) return;
  throw new ServerError(
    `connect: the server refuses what \`credentials\` answered: ${said.slice(1)}`,
    { code: 'PASSWORD', retryable: true },
  );
}

/** The first reply on a connection. After it nothing is read, until its client does. */
function replyOf(stream: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let reply = '';
    const read = (data: Buffer) => {
      reply += data.toString('latin1');
      if (!reply.endsWith('\r\n')) return;
      stream.pause();
      stream.off('data', read);
      resolve(reply.trim());
    };
    stream.on('data', read);
    stream.on('error', reject);
    stream.once('close', () => reject(new Error('Connection is closed.')));
  });
}

const inProtocol = (...words: readonly string[]): string =>
  [`*${words.length}`, ...words.flatMap((word) => [`$${Buffer.byteLength(word)}`, word]), ''].join(
    '\r\n',
  );
