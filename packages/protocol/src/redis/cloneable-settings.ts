import { lookup } from 'node:dns';
import type { ClusterNode, ClusterOptions, RedisOptions } from 'ioredis';
import { isAuthenticating } from './authenticating.js';
import { type Client, isCluster } from './client.js';
import { byName } from './cluster/by-name.js';
import { namedNodes } from './ioredis-internals/cluster-internals.js';
import { selectedDb } from './ioredis-internals/node-internals.js';
import { OwnServerConnector } from './own-server.js';
import { isFollowing } from './sentinel-watch.js';

/**
 * Where a client is connected to, as plain data that can be passed to another thread. How the client behaves
 * (retries, queues, time limits) is left out: the other thread decides that for itself.
 */
export type CloneableSettings =
  | RedisOptions
  | { readonly nodes: readonly ClusterNode[]; readonly options: ClusterOptions };

const WHERE = [
  ...['host', 'port', 'path', 'family', 'db', 'username', 'password', 'tls', 'Connector'],
  ...['connectTimeout', 'keepAlive', 'noDelay'],
  ...['sentinels', 'name', 'role', 'sentinelUsername', 'sentinelPassword', 'sentinelTLS'],
  ...['enableTLSForSentinelMode', 'preferredSlaves', 'natMap', 'serverPid'],
];
const WHERE_CLUSTER = ['natMap', 'useSRVRecords', 'slotsRefreshTimeout'];

/** @throws Error when a setting that is needed to connect is code: a function, a TLS context */
export function cloneableSettings(client: Client): CloneableSettings {
  if (!isCluster(client)) {
    const { Connector, ...options } = pick(client.options, WHERE);
    return structuredClone({ ...options, ...foreign(Connector), db: selectedDb(client) });
  }
  const { options } = client;
  // A client that was passed in has the default of ioredis.
  if (![undefined, byName, lookup].includes(options.dnsLookup as typeof byName)) {
    throw new Error('dnsLookup is a function');
  }
  const { Connector, ...shared } = pick(options.redisOptions ?? {}, WHERE);
  const redisOptions = { ...shared, ...foreign(Connector) };
  return structuredClone({
    nodes: namedNodes(client),
    options: { ...pick(options, WHERE_CLUSTER), redisOptions } as ClusterOptions,
  });
}

/** The other thread makes its own of our connectors. One of the user is code, and cannot be cloned. */
function foreign(Connector: RedisOptions['Connector']): Pick<RedisOptions, 'Connector'> {
  const isOurs =
    isFollowing(Connector) || isAuthenticating(Connector) || Connector === OwnServerConnector;
  return Connector === undefined || isOurs ? {} : { Connector };
}

function pick(options: object, names: readonly string[]): RedisOptions {
  const given = Object.entries(options).filter(([name]) => names.includes(name));
  // Null stands for a default of ioredis, which the other client fills in for itself.
  return Object.fromEntries(given.filter(([, value]) => value !== null && value !== undefined));
}
