import { Redis } from 'ioredis';
import { EmbeddedRedisError } from './embedded-redis-error.js';
import { findServer } from './find-server.js';
import { type ClusterShape, formCluster } from './form-cluster.js';
import { type EmbeddedRedis, startRedis } from './start-redis.js';

export interface ClusterOptions {
  /** At least 3, so that the loss of one leaves a majority. Default 3. */
  masters?: number;
  /** Default 1. */
  replicasPerMaster?: number;
  /** Told what happens, one short line each. Default: nobody. */
  onStatus?: ((text: string) => void) | undefined;
  /** Further settings of every server. Default: none. */
  args?: readonly string[];
}

/** A Redis Cluster of plain server processes on loopback that end with this process. */
export interface EmbeddedCluster extends AsyncDisposable {
  /** The masters first, then the replicas: replica `i` follows master `i % masters`. */
  nodes: { host: string; port: number; pid: number }[];
  /** Resolves when any of the servers has ended, for whatever reason, with the end of its log. */
  ended: Promise<string>;
  /** Ends all servers and waits for that. May be called twice. */
  stop(): Promise<void>;
  /** Sends SIGKILL to one node. @throws RangeError for an index without a node */
  kill(index: number): Promise<void>;
}

const CLUSTER_SETTINGS = [
  ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
  // Short, because tests wait for failovers; long enough for a busy machine.
  ...['--cluster-node-timeout', '3000'],
  // A replica stays where a test expects it.
  ...['--cluster-allow-replica-migration', 'no'],
  ...['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'],
];

/**
 * Starts a cluster and waits until every node finds it complete and every replica follows.
 * @throws {EmbeddedRedisError} as `startRedis`, also when only Docker has a server
 */
export async function startCluster(options: ClusterOptions = {}): Promise<EmbeddedCluster> {
  const { masters = 3, replicasPerMaster = 1, onStatus, args = [] } = options;
  const server = await findServer({ onStatus });
  if (server.origin === 'docker') {
    // Nodes tell each other addresses that only hold inside the container network.
    const message = 'A cluster needs redis-server or valkey-server on PATH; Docker does not do.';
    throw new EmbeddedRedisError('NO_REDIS', message);
  }
  const count = masters * (1 + replicasPerMaster);
  const startNode = () => startRedis({ server, args: [...CLUSTER_SETTINGS, ...args] });
  const servers = await startAll(count, startNode);
  try {
    await withClients(servers, { masters, replicasPerMaster });
  } catch (error) {
    await stopAll(servers);
    throw error;
  }
  onStatus?.(`${server.title}: a cluster of ${masters} masters and ${count - masters} replicas`);
  return embeddedCluster(servers);
}

/** All or none: if one does not start, those that did are stopped. */
async function startAll(
  count: number,
  startNode: () => Promise<EmbeddedRedis>,
): Promise<EmbeddedRedis[]> {
  const started = await Promise.allSettled(Array.from({ length: count }, startNode));
  const servers = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const failure = started.find((each) => each.status === 'rejected');
  if (failure === undefined) return servers;
  await stopAll(servers);
  throw failure.reason;
}

async function withClients(servers: readonly EmbeddedRedis[], shape: ClusterShape): Promise<void> {
  const clients = servers.map(({ host, port }) => new Redis({ host, port }));
  // Errors come out of the commands as well.
  for (const client of clients) client.on('error', () => {});
  try {
    await formCluster(clients, shape);
  } finally {
    for (const client of clients) client.disconnect();
  }
}

async function stopAll(servers: readonly EmbeddedRedis[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}

function embeddedCluster(servers: readonly EmbeddedRedis[]): EmbeddedCluster {
  const stop = () => stopAll(servers);
  return {
    nodes: servers.map(({ host, port, pid }) => ({ host, port, pid })),
    ended: Promise.race(servers.map(({ ended }) => ended)),
    stop,
    async kill(index) {
      const server = servers[index];
      if (server === undefined) throw new RangeError(`the cluster has no node ${index}`);
      await server.kill('SIGKILL');
    },
    [Symbol.asyncDispose]: stop,
  };
}
