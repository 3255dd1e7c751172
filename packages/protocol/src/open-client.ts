import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { TIMES } from './defaults.js';
import { InvalidOptionError } from './errors.js';
import { isRedisUrl, namesSentinels, nodeUrls, sentinelsOf } from './redis-url.js';
import type { Client } from './run-script.js';

/**
 * Where Redis is: a URL (`redis://`, `rediss://`, `unix://` or a socket path), the URLs of some nodes
 * of a cluster with commas between them, Sentinels (`redis-sentinel://host,host/NAME`), ioredis options,
 * the nodes of a cluster, or an ioredis client of yours, which is never closed by Piecework. A key prefix,
 * and reads from replicas (`scaleReads`), are refused.
 */
export type RedisInput =
  | string
  | RedisOptions
  | { readonly nodes: readonly { host: string; port: number }[]; readonly options?: ClusterOptions }
  | Client;

export const isClient = (input: object): input is Client =>
  'duplicate' in input && typeof input.duplicate === 'function';

/**
 * A server that accepts and never answers (a host that died, a network that swallows) is not waited
 * for: the call fails, and the socket is thrown away, so that the client builds a new one. What was
 * sent may still be carried out, which every script bears. Busy servers do answer: with BUSY.
 */
const ANSWER = {
  commandTimeout: TIMES.answerMs,
  socketTimeout: TIMES.answerMs,
  // A server that hangs does not close its side either.
  disconnectTimeout: 500,
  /** How long after it has loaded its data a server is found ready, at most. */
  maxLoadingRetryTime: 1_000,
};

/**
 * A server that became a replica says READONLY, and closes nothing when nobody tells it to: only a new
 * connection asks the Sentinels, or the name server, where the master is now.
 */
const ANEW = {
  reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
  sentinelCommandTimeout: 5_000,
};

/**
 * What a cluster refuses for the moment (TRYAGAIN, a connection that closed) ioredis sends again by itself,
 * every 100 ms and so often. For half a second that is quick; then those decide who called, and know for
 * how long they may: Patience, a worker that insists. They learn why, which an attempt that is still under
 * way at their deadline would not tell. CLUSTERDOWN they learn at once: sent again, it goes to any node,
 * which says MOVED, as if the slot had moved.
 */
const REDIRECTIONS = { maxRedirections: 5, retryDelayOnClusterDown: 0 };

/** A client that is not connected yet. */
export function openClient(input: Exclude<RedisInput, Client>): Client {
  const own = { protocol: 2 as const, lazyConnect: true };
  if (typeof input === 'string') {
    const urls = nodeUrls(input);
    if (urls.length > 1) return openCluster(urls);
    if (namesSentinels(input)) return openClient(sentinelsOf(input) as RedisOptions);
    return new Redis(input.replace(/^unix:\/\//, ''), { ...ANSWER, ...ANEW, ...own });
  }
  if ('nodes' in input && input.nodes) {
    const redisOptions = {
      ...ANSWER,
      ...input.options?.redisOptions,
      protocol: 2,
    } as RedisOptions;
    const own = { redisOptions, lazyConnect: true, slotsRefreshInterval: 0 };
    const options = { ...REDIRECTIONS, ...input.options, ...own } as ClusterOptions;
    return new Cluster([...input.nodes], options);
  }
  return new Redis({ ...ANSWER, ...ANEW, ...(input as RedisOptions), ...own } as RedisOptions);
}

/** Name, password and TLS are those of the first URL: all nodes of a cluster share them. */
function openCluster(urls: readonly string[]): Cluster {
  const nodes = urls.map((text) => new URL(text));
  const [{ username = '', password = '', protocol = '' } = {}] = nodes;
  const redisOptions: RedisOptions = {
    ...ANSWER,
    protocol: 2,
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
  const at = ({ hostname, port }: URL) => ({
    // In a URL an IPv6 address stands in brackets.
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || 6379),
  });
  return new Cluster(nodes.map(at), { ...REDIRECTIONS, redisOptions, lazyConnect: true });
}

/** @throws InvalidOptionError when it is none of the forms */
export function checkInput(input: RedisInput): void {
  const allowed =
    'a redis:// URL (of a cluster: several, with commas), redis-sentinel://host,host/NAME, ioredis options, { nodes: [{ host, port }] } or an ioredis client';
  if (typeof input === 'string') {
    if (!isRedisUrl(input)) throw new InvalidOptionError('redis', input, allowed);
    return;
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new InvalidOptionError('redis', input, allowed);
  }
  if ('nodes' in input && !isClient(input)) {
    const { nodes } = input;
    if (!Array.isArray(nodes) || nodes.length === 0)
      throw new InvalidOptionError('redis.nodes', nodes, allowed);
  }
  const { keyPrefix, options } = input as { keyPrefix?: unknown; options?: ClusterOptions };
  const prefix = keyPrefix || options?.keyPrefix || options?.redisOptions?.keyPrefix;
  if (prefix) throw new InvalidOptionError('redis.keyPrefix', prefix, 'none: use `queue`');
  const { scaleReads = 'master' } = options ?? {};
  if (scaleReads !== 'master') {
    const allowed = "'master': a replica may not know yet what was written";
    throw new InvalidOptionError('redis.options.scaleReads', scaleReads, allowed);
  }
}
