import { afterReading } from '../../common/waiting.js';
import { type Client, isCluster } from '../client.js';
import type { Cluster, Redis } from '../ioredis.js';
import { endWithoutNodes } from '../ioredis-internals/cluster-internals.js';

/*
 * What the cluster client of ioredis does not do by itself: count the connections that it lost, ask another node when
 * one hangs, and end when no node is left.
 */

/** How long we wait for the node that reports the state of the cluster, in ms: as long as ioredis waits for its map. */
const READY_MS = 1_000;

/** How often each client became ready and lost a node. A client has one listener, however many read its history. */
const histories = new WeakMap<Client, { arrivals: number; losses: number }>();

/** Counted from the first call of this function for the client. */
export function historyOf(client: Client): { readonly arrivals: number; readonly losses: number } {
  let known = histories.get(client);
  if (!known) {
    const history = { arrivals: 0, losses: 0 };
    client.on('ready', () => {
      history.arrivals += 1;
    });
    if (isCluster(client)) countLosses(client, history);
    histories.set(client, history);
    known = history;
  }
  return known;
}

/** The loss of a node that was never connected, such as a replica, is not counted: no call was lost with it. */
function countLosses(cluster: Cluster, history: { losses: number }): void {
  const served = new WeakSet<Redis>();
  const watch = (node: Redis): void => {
    if (node.status === 'ready') served.add(node);
    else node.once('ready', () => served.add(node));
  };
  for (const node of cluster.nodes('all')) watch(node);
  cluster.on('+node', watch);
  cluster.on('-node', (node: Redis) => {
    if (served.has(node)) history.losses += 1;
  });
}

/**
 * A cluster client asks a random node for the state of the cluster. A node that hangs would delay it by the whole
 * `commandTimeout`. So it reconnects after a second, and asks another node.
 */
export function retryHangs(cluster: Cluster): void {
  let timer: NodeJS.Timeout | undefined;
  cluster.on('connect', () => {
    clearTimeout(timer);
    const again = () => {
      if (cluster.status === 'connect') cluster.disconnect(true);
    };
    // After the replies that have already arrived are read.
    timer = afterReading(READY_MS, again).unref();
  });
}

/**
 * Closes a cluster client at once. ioredis ends it with the last of its nodes; a client whose cluster is away has
 * none, and would never end, nor answer the calls in its queue.
 */
export function cutCluster(cluster: Cluster): void {
  const nodes = cluster.nodes().length;
  cluster.disconnect();
  if (nodes > 0 || cluster.status !== 'disconnecting') return;
  endWithoutNodes(cluster);
}
