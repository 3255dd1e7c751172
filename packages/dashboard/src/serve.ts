import { type AddressInfo, isIP } from 'node:net';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  fastify,
  LogController,
} from 'fastify';
import { dashboard } from './plugin.js';
import { checkHost, isLoopback } from './security/access.js';
import { clientErrorHandler } from './security/client-errors.js';
import { type Credentials, checkedToken, parseUsers } from './security/credentials.js';
import { setHeaders } from './security/headers.js';
import { answerOf, bodyOf } from './security/refused.js';
import { signInWith } from './security/sign-in.js';
import type { DashboardOptions } from './shape/options.js';

export interface ServeOptions extends Omit<DashboardOptions, 'authorize'> {
  /** 0: a free one. @default 4000 */
  readonly port?: number | undefined;
  /** The address to listen at. @default '127.0.0.1' */
  readonly host?: string | undefined;
  /** At least 16 characters: the password of everybody, whatever name they sign in with; or a Bearer token. */
  readonly token?: string | undefined;
  /** The content of a file of `htpasswd -B`: the users and their passwords. */
  readonly users?: string | undefined;
  /**
   * Names by which visitors reach it, such as `dash.example`; IP addresses and `localhost` are always allowed. A request
   * for another name is refused: a stranger can make a name of his own lead here (DNS rebinding). @default none
   */
  readonly hosts?: readonly string[] | undefined;
  /**
   * Addresses of the proxies in front, whose X-Forwarded-For and X-Forwarded-Host are believed: addresses, CIDR blocks
   * such as `10.0.0.0/8`, and `loopback`. @default none
   */
  readonly trustProxy?: readonly string[] | undefined;
  readonly logger?: FastifyBaseLogger | undefined;
}

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

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
    hosts = [],
    trustProxy = [],
    logger,
    ...rest
  } = options;
  for (const [name, list] of Object.entries({ hosts, trustProxy }))
    if (!Array.isArray(list)) throw new TypeError(`${name} must be a list of texts`);
  const wrong = trustProxy.find((one) => !isProxy(one));
  if (wrong !== undefined)
    throw new TypeError(
      `trustProxy: ${JSON.stringify(wrong)} is not allowed; allowed: an IP address, a block such as 10.0.0.0/8, or loopback`,
    );
  const credentials = credentialsOf(token, users, rest.insecure ?? false, host);
  const app: FastifyInstance = fastify({
    trustProxy: trustProxy.length > 0 && [...trustProxy],
    bodyLimit: 65_536,
    // Streams of pages would keep it open.
    forceCloseConnections: true,
    // Answers that Node and Fastify would give before the plugin is asked, without its headers.
    http: { requireHostHeader: false },
    return503OnClosing: false,
    frameworkErrors: (_error, _request, reply: FastifyReply) => {
      void reply.code(400).send(bodyOf(answerOf({ statusCode: 400 })));
    },
    clientErrorHandler,
    logController: new LogController({ disableRequestLogging: true }),
    ...(logger === undefined ? { logger: false } : { loggerInstance: logger }),
  });
  app.server.prependListener('request', setHeaders);
  try {
    const signIn = credentials && (await signInWith(app, credentials));
    const authorize: DashboardOptions['authorize'] =
      signIn &&
      ((request) => {
        checkHost(request, hosts);
        return signIn(request);
      });
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

/** A number of proxies is none: Fastify trusts nobody by a number, as it cannot see who connects. */
function isProxy(text: string): boolean {
  const [address = '', bits = '0', ...more] = String(text).split('/');
  const most = isIP(address) === 4 ? 32 : 128;
  return text === 'loopback' || (isIP(address) !== 0 && Number(bits) <= most && more.length === 0);
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
