import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import basicAuth from '@fastify/basic-auth';
import rateLimit from '@fastify/rate-limit';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  fastify,
  LogController,
} from 'fastify';
import { LRUCache } from 'lru-cache';
import { dashboard } from './plugin.js';
import { isLoopback } from './security/access.js';
import { type Credentials, checkedToken, parseUsers, signIn } from './security/credentials.js';
import type { DashboardOptions, Visitor } from './shape/options.js';

export interface ServeOptions extends Omit<DashboardOptions, 'authorize'> {
  /** 0: a free one. @default 4000 */
  readonly port?: number | undefined;
  /** The address to listen at. @default '127.0.0.1' */
  readonly host?: string | undefined;
  /** At least 16 characters: the password of everybody, whatever name they sign in with; or a Bearer token. */
  readonly token?: string | undefined;
  /** The content of a file of `htpasswd -B`: the users and their passwords. */
  readonly users?: string | undefined;
  /** Whether a proxy in front is trusted to name the address and the host (X-Forwarded-…). @default false */
  readonly trustProxy?: boolean | undefined;
  readonly logger?: FastifyBaseLogger | undefined;
}

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Attempts to sign in that one address has in a minute. */
const ATTEMPTS = 30;
/** A password that was right is not computed again for this time: bcrypt takes some 60 ms. */
const KNOWN_FOR_MS = 300_000;

/**
 * Serves the dashboard by itself.
 * @throws TypeError: neither token nor users nor `insecure`, or `insecure` at an address that others reach · Error of
 *   the system: the port is taken
 */
export async function serveDashboard(options: ServeOptions): Promise<Served> {
  const {
    port = 4_000,
    host = '127.0.0.1',
    token,
    users,
    trustProxy = false,
    logger,
    ...rest
  } = options;
  const credentials = credentialsOf(token, users, rest.insecure ?? false, host);
  const app: FastifyInstance = fastify({
    trustProxy,
    bodyLimit: 65_536,
    // Streams of pages would keep it open.
    forceCloseConnections: true,
    logController: new LogController({ disableRequestLogging: true }),
    ...(logger === undefined ? { logger: false } : { loggerInstance: logger }),
  });
  try {
    const authorize = credentials && (await addSignIn(app, credentials));
    await app.register(dashboard, { ...rest, ...(authorize ? { authorize } : {}) });
    await app.listen({ port, host });
  } catch (error) {
    await app.close();
    throw error;
  }
  const bound = (app.server.address() as AddressInfo).port;
  const named = host.includes(':') ? `[${host}]` : host;
  const close = () => app.close().then(() => {});
  return { url: `http://${named}:${bound}/`, port: bound, close, [Symbol.asyncDispose]: close };
}

/** @returns undefined: nobody signs in */
function credentialsOf(
  token: string | undefined,
  users: string | undefined,
  insecure: boolean,
  host: string,
): Credentials | undefined {
  const given = [token !== undefined, users !== undefined, insecure].filter(Boolean).length;
  if (given !== 1) throw new TypeError('give one of token, users, and insecure');
  if (token !== undefined) return { token: checkedToken(token) };
  if (users !== undefined) return { users: parseUsers(users) };
  if (!isLoopback(host))
    throw new TypeError(
      `insecure is only for this machine, and others may reach ${host}; listen at 127.0.0.1, or give a token or users`,
    );
  return undefined;
}

/** Asks for name and password by the browser's own means (HTTP Basic), which the stream of events has, too. */
async function addSignIn(
  app: FastifyInstance,
  credentials: Credentials,
): Promise<(request: FastifyRequest) => Visitor | undefined> {
  const known = new LRUCache<string, string>({ max: 200, ttl: KNOWN_FOR_MS });
  const names = new WeakMap<object, string>();
  const keyOf = ({ headers }: FastifyRequest) =>
    createHash('sha256')
      .update(headers.authorization ?? '')
      .digest('hex');
  await app.register(rateLimit, { global: false });
  await app.register(basicAuth, {
    authenticate: { realm: 'Piecework' },
    validate: async (name, password, request) => {
      const visitor = await signIn(credentials, name, password);
      if (visitor === undefined) throw refusal(401, 'Wrong name or password.');
      known.set(keyOf(request), visitor);
      names.set(request.raw, visitor);
    },
  });
  const countAttempt = app.createRateLimit({ max: ATTEMPTS, timeWindow: 60_000 });
  app.addHook('onRequest', async (request, reply) => {
    const before = request.headers.authorization && known.get(keyOf(request));
    if (before) {
      names.set(request.raw, before);
      return;
    }
    // A browser asks without a name first: that is no attempt.
    if (request.headers.authorization) {
      const attempt = await countAttempt(request);
      if (!attempt.isAllowed && attempt.isExceeded)
        throw refusal(429, 'Too many attempts; wait a minute.');
    }
    try {
      await signInBy(app, request, reply, credentials, names);
    } catch (error) {
      const { statusCode = 401 } = error as { statusCode?: number };
      request.log.warn({ ip: request.ip, status: statusCode }, 'dashboard: not signed in');
      throw error;
    }
  });
  return ({ raw }) => {
    const name = names.get(raw);
    return name === undefined ? undefined : { name };
  };
}

async function signInBy(
  app: FastifyInstance,
  request: FastifyRequest,
  reply: Parameters<FastifyInstance['basicAuth']>[1],
  credentials: Credentials,
  names: WeakMap<object, string>,
): Promise<void> {
  const [, bearer] = /^Bearer (\S{1,1000})$/i.exec(request.headers.authorization ?? '') ?? [];
  if (bearer !== undefined && 'token' in credentials) {
    const visitor = await signIn(credentials, '', bearer);
    if (visitor === undefined) throw refusal(401, 'Wrong token.');
    names.set(request.raw, visitor);
    return;
  }
  await new Promise<void>((resolve, reject) =>
    app.basicAuth(request, reply, (error) => (error ? reject(error) : resolve())),
  );
}

function refusal(statusCode: number, message: string): Error {
  return Object.assign(new Error(message), { statusCode });
}
