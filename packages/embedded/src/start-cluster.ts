import { join } from 'node:path';
import { Redis } from 'ioredis';
import { EmbeddedRedisError } from './embedded-redis-error.js';
import { findServer } from './find-server.js';
import { type ClusterShape, formCluster } from './form-cluster.js';
import { type EmbeddedRedis, randomPassword, startRedis } from './start-redis.js';

export interface ClusterOptions {
  /** At least 3, so that the loss of one leaves a majority. Default 3. */
  masters?: number;
  /** Default 1. */
  replicasPerMaster?: number;
  /** Called with one short line for each step. Default: nothing. */
  onStatus?: ((text: string) => void) | undefined;
  /** Further settings of every server. Default: none. */
  args?: readonly string[];
  /** Of all nodes, as in `startRedis`; it keeps no other user of the machine out. Default: a random one. */
  password?: string;
  /** Folder for the data of all nodes, `node-<index>` each, which is not removed. Default: private folders. */
  dir?: string;
  /** `aof`: a node that is started again has its data. Default `none`. */
  persistence?: 'none' | 'aof';
}

/** A Redis Cluster of plain server processes on loopback that end with this process. */
export interface EmbeddedCluster extends AsyncDisposable {
  /** The masters first, then the replicas: replica `i` follows master `i % masters`. */
  nodes: { host: string; port: number; pid: number }[];
  /** The URLs of all nodes, separated by commas: a value of REDIS_URL, with the password. */
  url: string;
  /** Resolves with the end of its log when any of the servers has ended, for whatever reason. */
  ended: Promise<string>;
  /** Rejects (`REDIS_ENDED`) when any of the servers has ended and was not closed. Need not be awaited. */
  lost: Promise<never>;
  /** Ends all servers and waits for that. May be called again at any time. */
  close(): Promise<void>;
  /** Sends SIGKILL to one node. @throws RangeError for an index without a node */
  kill(index: number): Promise<void>;
  /**
   * Starts a killed node again on its port, with the data in its folder; needs the option `dir`. Resolves when the node
   * answers, which is before it has joined the cluster again.
   * @throws RangeError for an index without a node, or without `dir`
   */
  startAgain(index: number): Promise<void>;
}

const CLUSTER_SETTINGS = [
  ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
  // Short, as tests wait for failovers, but long enough for a busy machine.
  ...['--cluster-node-timeout', '3000'],
  // Tests expect a replica to stay with its master.
  ...['--cluster-allow-replica-migration', 'no'],
  ...['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'],
];

/**
 * Starts a cluster and waits until every node finds it complete and every replica follows. It is not safe beside other
 * users of the machine: the bus on which its nodes speak to each other has no password. Another user can join it with a
 * node of his own, and then receives the password and the data of clients that this node redirects to itself.
 * @throws {EmbeddedRedisError} as `startRedis`, also when only Docker has a server
 */
export async function startCluster(options: ClusterOptions = {}): Promise<EmbeddedCluster> {
  const { masters = 3, replicasPerMaster = 1, onStatus, args = [], dir, persistence } = options;
  const { password = randomPassword() } = options;
  const server = await findServer({ onStatus });
  if (server.origin === 'docker') {
    // Nodes exchange addresses that are valid only inside the container network.
    const message =
      'A cluster needs redis-server or valkey-server on PATH; it cannot run in Docker.';
    throw new EmbeddedRedisError('NO_REDIS', message);
  }
  const count = masters * (1 + replicasPerMaster);
  const startNode: StartNode = (i, port) =>
    startRedis({
      ...{ server, password, args: [...CLUSTER_SETTINGS, ...args] },
      ...(dir === undefined ? {} : { dir: join(dir, `node-${i}`) }),
      ...(persistence === undefined ? {} : { persistence }),
      ...(port === undefined ? {} : { port }),
    });
  const servers = await startAll(count, startNode);
  try {
    await withClients(servers, { masters, replicasPerMaster });
  } catch (error) {
    await closeAll(servers);
    throw error;
  }
  onStatus?.(`${server.title}: a cluster of ${masters} masters and ${count - masters} replicas`);
  return embeddedCluster(servers, dir === undefined ? undefined : startNode);
}

type StartNode = (index: number, port?: number) => Promise<EmbeddedRedis>;

/** All or none: if one does not start, those that did are closed. */
async function startAll(count: number, startNode: StartNode): Promise<EmbeddedRedis[]> {
  const started = await Promise.allSettled(Array.from({ length: count }, (_, i) => startNode(i)));
  const servers = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const failure = started.find((each) => each.status === 'rejected');
  if (failure === undefined) return servers;
  await closeAll(servers);
  throw failure.reason;
}

async function withClients(servers: readonly EmbeddedRedis[], shape: ClusterShape): Promise<void> {
  const clients = servers.map(({ host, port, password }) => new Redis({ host, port, password }));
  // The commands reject with these errors as well.
  for (const client of clients) client.on('error', () => {});
  try {
    await formCluster(clients, shape);
  } finally {
    for (const client of clients) client.disconnect();
  }
}

async function closeAll(servers: readonly EmbeddedRedis[]): Promise<void> {
  await Promise.all(servers.map((server) => server.close()));
}

function embeddedCluster(servers: EmbeddedRedis[], startAgain?: StartNode): EmbeddedCluster {
  const close = () => closeAll(servers);
  const node = (index: number) => {
    const server = servers[index];
    if (server === undefined) throw new RangeError(`the cluster has no node ${index}`);
    return server;
  };
  const lost = Promise.race(servers.map((server) => server.lost));
  lost.catch(() => {});
  return {
    lost,
    nodes: servers.map(({ host, port, pid }) => ({ host, port, pid })),
    url: servers.map(({ url }) => url).join(','),
    ended: Promise.race(servers.map(({ ended }) => ended)),
    close,
    async kill(index) {
      await node(index).kill('SIGKILL');
    },
    async startAgain(index) {
      const { port, ended } = node(index);
      if (!startAgain)
        throw new RangeError('a node can be started again only with the option `dir`');
      await ended;
      servers[index] = await startAgain(index, port);
    },
    [Symbol.asyncDispose]: close,
  };
}
