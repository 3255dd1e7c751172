import type { ClusterOptions, RedisOptions } from 'ioredis';
import { isNearly } from '../common/nearly.js';
import { TIMES } from '../contract/defaults.js';
import { InvalidOptionError } from '../contract/errors.js';
import { HIDDEN } from '../contract/shown-value.js';
import { authenticating } from './authenticating.js';
import type { Client, IoredisClient } from './client.js';
import { byName } from './cluster/by-name.js';
import { Credentials, type CredentialsProvider } from './credentials.js';
import { Cluster, Redis, SentinelConnector } from './ioredis.js';
import { leaveOnce } from './ioredis-internals/node-internals.js';
import { connectorOf } from './own-server.js';
import { PlainConnector } from './plain-connector.js';
import {
  asRedisUrl,
  disagree,
  hasSignIn,
  hasWrongEscape,
  hasWrongPort,
  isDb,
  isRedisUrl,
  namesSentinels,
  nodeUrls,
  sentinelsOf,
  wrongDb,
} from './redis-url.js';
import { isWatched, SentinelWatch } from './sentinel-watch.js';

/**
 * Where Redis is: a URL (`redis://`, `rediss://`, `unix://` or a socket path), the URLs of some nodes
 * of a cluster with commas between them, Sentinels (`redis-sentinel://host,host/NAME`), ioredis options,
 * the nodes of a cluster, or an ioredis client of yours, of version 5 or newer (`valkey://` means the same as `redis://`). User and password
 * that change are given by `credentials`, beside the `url`, the ioredis options or the nodes. A client of yours is never closed by Piecework. Its db is the one that it chose last when a worker starts or a wait begins: `select` another one before, not meanwhile, as
 * blocking reads have connections of their own. Refused are a key
 * prefix, reads from replicas (`scaleReads`), and replies of another shape: `replyMapping: 'resp3'` and
 * `stringNumbers`.
 */
export type RedisInput =
  | string
  | { readonly url: string; readonly credentials: CredentialsProvider }
  | (OfAnyCopy<RedisOptions> & { readonly credentials?: CredentialsProvider | undefined })
  | {
      readonly nodes: readonly { host: string; port: number }[];
      readonly options?: Omit<ClusterOptions, 'redisOptions'> & {
        readonly redisOptions?: OfAnyCopy<NonNullable<ClusterOptions['redisOptions']>> | undefined;
      };
      readonly credentials?: CredentialsProvider | undefined;
    }
  | IoredisClient;

/** Options as each copy of ioredis has them: in one copy, the type of a connector is a class of that copy. */
type OfAnyCopy<Options> = Omit<Options, 'Connector'> & { readonly Connector?: unknown };

/** Where a client of ours connects to. */
export type Where =
  | string
  | RedisOptions
  | {
      readonly nodes: readonly { host: string; port: number }[];
      readonly options?: ClusterOptions;
    };

/** Takes an input apart, with the schemes of Valkey as those of Redis. */
export function apart(input: Exclude<RedisInput, IoredisClient>): {
  readonly where: Where;
  readonly credentials: Credentials | undefined;
} {
  if (typeof input === 'string') return { where: asRedisUrl(input), credentials: undefined };
  const {
    credentials: provider,
    url,
    ...rest
  } = input as { credentials?: CredentialsProvider; url?: string };
  const where = provider && url !== undefined ? asRedisUrl(url) : rest;
  return { where, credentials: provider && Credentials.of(provider) };
}

export const isClient = (input: object): input is IoredisClient =>
  'duplicate' in input && typeof input.duplicate === 'function';

/** What we call of every client, and of a cluster's as well, by the names of ioredis. */
const CALLED = ['sendCommand', 'pipeline', 'connect', 'disconnect', 'on', 'off', 'once'];
const CALLED_OF_CLUSTERS = ['nodes', 'refreshSlotsCache'];

/** The members of ioredis that a client lacks; of older versions, of a wrapper that passes on only some. */
function lackedBy(client: IoredisClient): string[] {
  const has = client as unknown as Record<string, unknown>;
  const called = client.isCluster ? [...CALLED, ...CALLED_OF_CLUSTERS] : CALLED;
  const read = client.isCluster ? ['options', 'slots', 'startupNodes'] : ['options'];
  return [
    ...called.filter((name) => typeof has[name] !== 'function'),
    ...read.filter((name) => typeof has[name] !== 'object'),
  ];
}

/** Recognises the clients of node-redis: single, cluster and pool. */
const isOtherClient = (input: object): boolean => {
  const has = (name: string) => typeof (input as Record<string, unknown>)[name] === 'function';
  return (has('duplicate') || has('sendCommand') || has('connect')) && !has('evalsha');
};

/**
 * When a server accepts a connection and never answers (a host that died, a network that drops packets), the call fails
 * and the socket is closed, so that the client opens a new one. Sent calls may still be carried out, which every script
 * allows. Busy servers do answer: with BUSY.
 */
const ANSWER = {
  commandTimeout: TIMES.answerMs,
  socketTimeout: TIMES.answerMs,
  // A server that hangs does not close its side of the connection either.
  disconnectTimeout: 500,
  /** The longest time until the client notices that a server has loaded its data. */
  maxLoadingRetryTime: 1_000,
};

/**
 * A server that became a replica answers READONLY and may keep its connections open. So may a former master that was
 * not demoted yet, with `min-replicas-to-write`: it answers NOREPLICAS once its replicas follow another server. Only a
 * new connection asks the Sentinels, the name server or the proxy where the master is now.
 */
const ANEW = {
  reconnectOnError: ({ message }: Error) =>
    message.startsWith('READONLY') ||
    // cure: a server that takes no writes is left
    message.startsWith('NOREPLICAS'),
  sentinelCommandTimeout: 5_000,
};

/**
 * When a cluster refuses a call for the moment (TRYAGAIN, a connection that closed), ioredis sends it again, every
 * 100 ms and this many times. After half a second the call fails, and its caller (Patience, a worker) decides whether
 * to retry, because it knows its deadline. It also learns the reason, which an attempt in progress at the deadline
 * would not report. CLUSTERDOWN fails at once: sent again, the call would go to any node, which would answer MOVED as
 * if the slot had moved.
 */
const REDIRECTIONS = { maxRedirections: 5, retryDelayOnClusterDown: 0 };

const OF_CLUSTERS = {
  ...REDIRECTIONS,
  // cure: nodes of a cluster are connected to by their names
  dnsLookup: byName,
};

type Connector = NonNullable<RedisOptions['Connector']>;

/** A client that is not connected yet. */
export function openClient(input: Where, credentials?: Credentials): Client {
  const own = { protocol: 2 as const, lazyConnect: true };
  const by = (Connector: Connector | undefined, Default: Connector = PlainConnector) =>
    credentials
      ? { Connector: authenticating(Connector ?? Default, credentials) }
      : Connector && { Connector };
  if (typeof input === 'string') {
    const urls = nodeUrls(input);
    if (urls.length > 1) return openCluster(urls, by(undefined));
    if (namesSentinels(input)) return openClient(sentinelsOf(input) as RedisOptions, credentials);
    return leaveOnce(
      new Redis(input.replace(/^unix:\/\//, ''), {
        ...{ ...ANSWER, ...ANEW, ...own, ...by(connectorOf(input).Connector) },
      }),
    );
  }
  if ('nodes' in input && input.nodes) {
    const redisOptions = {
      ...ANSWER,
      ...input.options?.redisOptions,
      ...by(input.options?.redisOptions?.Connector),
      protocol: 2,
    } as RedisOptions;
    const own = { redisOptions, lazyConnect: true, slotsRefreshInterval: 0 };
    const options = { ...OF_CLUSTERS, ...input.options, ...own } as ClusterOptions;
    return new Cluster([...input.nodes], options);
  }
  const given = { ...(input as RedisOptions), ...own, ...connectorOf(input) };
  const options = { ...ANSWER, ...ANEW, ...given } as RedisOptions;
  if (!isWatched(options) || options.Connector) {
    const Default = options.sentinels ? (SentinelConnector as unknown as Connector) : undefined;
    return leaveOnce(new Redis({ ...options, ...by(options.Connector, Default) }));
  }
  const watch = new SentinelWatch(options);
  const client = leaveOnce(new Redis({ ...options, ...by(watch.Connector) }));
  client.on('end', watch.hush);
  return client;
}

/** Name, password and TLS are those of the first URL: all nodes of a cluster share them. */
function openCluster(urls: readonly string[], connector: RedisOptions = {}): Cluster {
  const nodes = urls.map((text) => new URL(text));
  const [{ username = '', password = '', protocol = '' } = {}] = nodes;
  const redisOptions: RedisOptions = {
    ...ANSWER,
    protocol: 2,
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
    ...connector,
  };
  const at = ({ hostname, port }: URL) => ({
    // A URL has an IPv6 address in brackets.
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || 6379),
  });
  return new Cluster(nodes.map(at), { ...OF_CLUSTERS, redisOptions, lazyConnect: true });
}

/** Refused options: with these our keys would not be found, or replies would have a shape that we do not read. */
const REFUSED: Readonly<Record<string, { readonly refuses: unknown; readonly allowed: string }>> = {
  keyPrefix: { refuses: 'any', allowed: 'none: use `queue`' },
  replyMapping: {
    // cure: replies of another shape are refused
    refuses: 'resp3',
    allowed:
      "'legacy', the default, with either protocol; use another client for what needs 'resp3'",
  },
  stringNumbers: {
    refuses: 'any',
    allowed:
      'false, the default: numbers have to come as numbers; use another client for large ones',
  },
};

/** @throws InvalidOptionError */
function refuse(options: object | undefined): void {
  for (const [name, { refuses, allowed }] of Object.entries(REFUSED)) {
    const value = (options as Record<string, unknown> | undefined)?.[name];
    if (refuses === 'any' ? value : value === refuses)
      throw new InvalidOptionError(`redis.${name}`, value, allowed);
  }
}

const DB = 'a whole number from 0 on';

/** ioredis ignores unknown options and then connects to its default server, so a misspelled one is refused here. */
function refuseMisspelled(options: object): void {
  // A custom connector may have its own options.
  if ('Connector' in options) return;
  for (const [given, value] of Object.entries(options)) {
    const meant = MISTAKEN[given] ?? PLACES.find((name) => isNearly(given, name));
    if (!meant) continue;
    const allowed = `no such option of ioredis; did you mean ${meant}?`;
    throw new InvalidOptionError(`redis.${given}`, show(value), allowed);
  }
}

/** Only numbers are shown: another value may be a secret or an object. */
const show = (value: unknown) => (typeof value === 'number' ? value : `(${typeof value})`);

/** The options that say where Redis is. */
const PLACES = ['host', 'port', 'path', 'username', 'password', 'sentinels'];
/** What other libraries call them. */
const MISTAKEN: Readonly<Record<string, string>> = {
  url: 'redis: URL',
  hostname: 'host',
  user: 'username',
  pass: 'password',
  database: 'db',
  socket: 'host and port',
};

/** The part of a URL after its question mark, which ioredis reads as options. */
const queryOf = (url: string): object => Object.fromEntries(new URLSearchParams(url.split('?')[1]));

const OF_CLUSTER =
  'as URLs of a cluster one scheme and no options; user and password of the first URL hold for all, others repeat them or have none';

const ALONE = 'a function, without a user or a password beside it';

/** @throws InvalidOptionError when `credentials` is no function */
function hasCredentials(input: object): boolean {
  const { credentials } = input as { credentials?: unknown };
  if (isClient(input) || credentials === undefined) return false;
  if (typeof credentials !== 'function')
    throw new InvalidOptionError('redis.credentials', HIDDEN, ALONE);
  return true;
}

/** Checks `{ url, credentials }`. */
function checkUrl(input: object): void {
  const { url, credentials: _, ...others } = input as { url: unknown; credentials: unknown };
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw new InvalidOptionError(`redis.${other}`, HIDDEN, 'not beside redis.url');
  if (typeof url !== 'string')
    throw new InvalidOptionError('redis.url', HIDDEN, 'a URL, as redis alone may be');
  checkText(asRedisUrl(url));
  if (hasSignIn(asRedisUrl(url))) throw new InvalidOptionError('redis.credentials', HIDDEN, ALONE);
}

/** The forms of an input, in an error. */
const FORMS =
  'a redis:// URL (of a cluster: several, with commas), redis-sentinel://host,host/NAME, ioredis options, { nodes: [{ host, port }] } or an ioredis client';

/** @throws InvalidOptionError when a text is none of the forms, or has an option that is refused */
function checkText(input: string): void {
  if (wrongDb(input) !== undefined)
    throw new InvalidOptionError(
      'redis',
      HIDDEN,
      `as db ${DB}; in the URLs of a cluster 0 or none`,
    );
  if (hasWrongPort(input))
    throw new InvalidOptionError('redis', HIDDEN, 'as port a whole number up to 65535');
  if (!isRedisUrl(input)) throw new InvalidOptionError('redis', HIDDEN, FORMS);
  if (hasWrongEscape(input))
    throw new InvalidOptionError('redis', HIDDEN, 'with user and password %-encoded: % as %25');
  for (const url of nodeUrls(input)) refuse(queryOf(url));
  if (disagree(input)) throw new InvalidOptionError('redis', HIDDEN, OF_CLUSTER);
}

/** @throws InvalidOptionError when it is none of the forms, or has an option that is refused */
export function checkInput(input: RedisInput): void {
  if (typeof input === 'string') {
    checkText(asRedisUrl(input));
    return;
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new InvalidOptionError('redis', HIDDEN, FORMS);
  }
  if (isOtherClient(input)) {
    const allowed =
      'an ioredis client (Redis or Cluster), or a URL or options, of which one is made';
    throw new InvalidOptionError('redis', 'a client of another library', allowed);
  }
  const lacked = isClient(input) ? lackedBy(input) : [];
  if (lacked.length > 0) {
    const given = `an ioredis client without ${lacked.join(', ')}`;
    const allowed =
      'a Redis or Cluster of ioredis 5 or newer, or a URL or options, of which one is made';
    throw new InvalidOptionError('redis', given, allowed);
  }
  if ('nodes' in input && !isClient(input)) {
    const { nodes } = input;
    if (!Array.isArray(nodes) || nodes.length === 0)
      throw new InvalidOptionError('redis.nodes', HIDDEN, FORMS);
  } else if (!isClient(input)) {
    if (hasCredentials(input) && 'url' in input) {
      checkUrl(input);
      return;
    }
    const { db } = input as { db?: unknown };
    if (db !== undefined && !isDb(db)) throw new InvalidOptionError('redis.db', db, DB);
    refuseMisspelled(input);
  }
  const { options } = input as { options?: ClusterOptions };
  if (hasCredentials(input)) {
    for (const given of [input as RedisOptions, options?.redisOptions])
      if (given?.username !== undefined || given?.password !== undefined)
        throw new InvalidOptionError('redis.credentials', HIDDEN, ALONE);
  }
  for (const given of [input, options, options?.redisOptions]) refuse(given);
  const { scaleReads = 'master' } = options ?? {};
  if (scaleReads !== 'master') {
    const allowed = "'master': a replica may not know yet what was written";
    throw new InvalidOptionError('redis.options.scaleReads', scaleReads, allowed);
  }
}
