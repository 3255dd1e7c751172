import { join } from 'node:path';
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
  /** Folder for the data of all nodes, `node-<index>` each, which outlives them. Default: private ones. */
  dir?: string;
  /** `aof`: a node that is started again finds its data. Default `none`. */
  persistence?: 'none' | 'aof';
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
  /**
   * Starts a killed node again, on its port, with what its folder holds: it needs the option `dir`.
   * Resolves when it answers, which is before it has found its place in the cluster.
   * @throws RangeError for an index without a node, or without `dir`
   */
  startAgain(index: number): Promise<void>;
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
  const { masters = 3, replicasPerMaster = 1, onStatus, args = [], dir, persistence } = options;
  const server = await findServer({ onStatus });
  if (server.origin === 'docker') {
    // Nodes tell each other addresses that only hold inside the container network.
    const message = 'A cluster needs redis-server or valkey-server on PATH; Docker does not do.';
    throw new EmbeddedRedisError('NO_REDIS', message);
  }
  const count = masters * (1 + replicasPerMaster);
  const startNode: StartNode = (i, port) =>
    startRedis({
      ...{ server, args: [...CLUSTER_SETTINGS, ...args] },
      ...(dir === undefined ? {} : { dir: join(dir, `node-${i}`) }),
      ...(persistence === undefined ? {} : { persistence }),
      ...(port === undefined ? {} : { port }),
    });
  const servers = await startAll(count, startNode);
  try {
    await withClients(servers, { masters, replicasPerMaster });
  } catch (error) {
    await stopAll(servers);
    throw error;
  }
  onStatus?.(`${server.title}: a cluster of ${masters} masters and ${count - masters} replicas`);
  return embeddedCluster(servers, dir === undefined ? undefined : startNode);
}

type StartNode = (index: number, port?: number) => Promise<EmbeddedRedis>;

/** All or none: if one does not start, those that did are stopped. */
async function startAll(count: number, startNode: StartNode): Promise<EmbeddedRedis[]> {
  const started = await Promise.allSettled(Array.from({ length: count }, (_, i) => startNode(i)));
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

function embeddedCluster(servers: EmbeddedRedis[], startAgain?: StartNode): EmbeddedCluster {
  const stop = () => stopAll(servers);
  const node = (index: number) => {
    const server = servers[index];
    if (server === undefined) throw new RangeError(`the cluster has no node ${index}`);
    return server;
  };
  return {
    nodes: servers.map(({ host, port, pid }) => ({ host, port, pid })),
    ended: Promise.race(servers.map(({ ended }) => ended)),
    stop,
    async kill(index) {
      await node(index).kill('SIGKILL');
    },
    async startAgain(index) {
      const { port, ended } = node(index);
      if (!startAgain) throw new RangeError('what is to be started again needs a `dir`');
      await ended;
      servers[index] = await startAgain(index, port);
    },
    [Symbol.asyncDispose]: stop,
  };
}
