import { Cluster, type Redis } from 'ioredis';
import type { Client } from './client.js';

/*
 * What ioredis' cluster client does not do by itself: count what it lost, and come to an end.
 */

/** How long the node has that says whether a cluster is whole, in ms, as ioredis gives the one that says its map. */
const READY_MS = 1_000;

/** How often each client became ready, or lost a node: one listener for each, however many look. */
const histories = new WeakMap<Client, { arrivals: number; losses: number }>();

/** Since it was asked for the first time. */
export function historyOf(client: Client): { readonly arrivals: number; readonly losses: number } {
  let known = histories.get(client);
  if (!known) {
    const history = { arrivals: 0, losses: 0 };
    client.on('ready', () => {
      history.arrivals += 1;
    });
    if (client instanceof Cluster) countLosses(client, history);
    histories.set(client, history);
    known = history;
  }
  return known;
}

/** A node that was never connected, as a replica that is not read from, took no call with it. */
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
 * Which node a cluster client asks whether the cluster is whole is left to chance. One that hangs would
 * keep it for as long as `commandTimeout`; connecting anew, it asks another.
 */
export function retryHangs(cluster: Cluster): void {
  let timer: NodeJS.Timeout | undefined;
  cluster.on('connect', () => {
    clearTimeout(timer);
    const again = () => {
      if (cluster.status === 'connect') cluster.disconnect(true);
    };
    // Behind what has arrived by then.
    timer = setTimeout(() => setImmediate(again), READY_MS).unref();
  });
}

/**
 * A cluster client ends with the last of its nodes. One whose cluster is away has none: it would never
 * end, and leave what is queued without an answer for ever.
 */
export function cutCluster(cluster: Cluster): void {
  const nodes = cluster.nodes().length;
  cluster.disconnect();
  if (nodes > 0 || cluster.status !== 'disconnecting') return;
  // As ioredis does itself with a client that never had any.
  const ending = cluster as unknown as { setStatus(to: string): void; handleCloseEvent(): void };
  ending.setStatus('close');
  ending.handleCloseEvent();
}
