import { lookup } from 'node:dns';
import {
  Cluster,
  type ClusterNode,
  type ClusterOptions,
  type Redis,
  type RedisOptions,
} from 'ioredis';
import type { Client } from './client.js';

/**
 * Where a client is connected to, as plain data that another thread can be given. How it behaves
 * there (retries, queues, time limits) is left out: that is the other thread's own affair.
 */
export type CloneableSettings =
  | RedisOptions
  | { readonly nodes: readonly ClusterNode[]; readonly options: ClusterOptions };

const WHERE = [
  ...['host', 'port', 'path', 'family', 'db', 'username', 'password', 'tls', 'Connector'],
  ...['connectTimeout', 'keepAlive', 'noDelay'],
  ...['sentinels', 'name', 'role', 'sentinelUsername', 'sentinelPassword', 'sentinelTLS'],
  ...['enableTLSForSentinelMode', 'preferredSlaves', 'natMap'],
];
const WHERE_CLUSTER = ['natMap', 'useSRVRecords', 'slotsRefreshTimeout'];

/** The db of a client now: its owner may have chosen another one since. `duplicate` goes by the options. */
export function dbOf(client: Redis): number {
  const { condition, options } = client as Redis & { condition?: { select?: number } };
  return condition?.select ?? options.db ?? 0;
}

/** @throws Error when something that is needed to get there is code: a function, a TLS context */
export function cloneableSettings(client: Client): CloneableSettings {
  if (!(client instanceof Cluster))
    return structuredClone({ ...pick(client.options, WHERE), db: dbOf(client) });
  const { options } = client;
  if (options.dnsLookup !== undefined && options.dnsLookup !== lookup) {
    throw new Error('dnsLookup is a function');
  }
  // What the user named, as ioredis keeps it: the nodes it knows by now may be gone by then.
  const { startupNodes } = client as unknown as { startupNodes: readonly ClusterNode[] };
  const redisOptions = pick(options.redisOptions ?? {}, WHERE);
  return structuredClone({
    nodes: startupNodes,
    options: { ...pick(options, WHERE_CLUSTER), redisOptions } as ClusterOptions,
  });
}

function pick(options: object, names: readonly string[]): RedisOptions {
  const given = Object.entries(options).filter(([name]) => names.includes(name));
  // ioredis' own defaults fill in what is null here.
  return Object.fromEntries(given.filter(([, value]) => value !== null && value !== undefined));
}
