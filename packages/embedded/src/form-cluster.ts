import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { EmbeddedRedisError } from './embedded-redis-error.js';

export interface ClusterShape {
  masters: number;
  replicasPerMaster: number;
}

const HASH_SLOTS = 16_384;
const STEP_TIMEOUT_MS = 60_000;

/**
 * Forms a cluster of empty nodes by the commands that `redis-cli --cluster create` sends.
 * @param nodes a client for each node: the masters first, then the replicas
 */
export async function formCluster(nodes: readonly Redis[], shape: ClusterShape): Promise<void> {
  const masters = nodes.slice(0, shape.masters);
  const replicas = nodes.slice(shape.masters);

  // Different epochs from the start, so that nodes need not resolve a tie.
  await Promise.all(nodes.map((node, i) => node.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)));
  await Promise.all(
    masters.map((node, i) =>
      node.call('CLUSTER', 'ADDSLOTSRANGE', ...slotRange(i, masters.length)),
    ),
  );
  const [first, ...others] = nodes;
  for (const { options } of others) await first?.cluster('MEET', options.host!, options.port!);
  await everyNode(nodes, 'knows the others', async (node) => {
    const lines = await clusterNodes(node);
    return lines.length === nodes.length && !lines.some((line) => line.includes('handshake'));
  });

  const ids = await Promise.all(masters.map((node) => node.cluster('MYID')));
  await Promise.all(
    replicas.map((node, i) => node.call('CLUSTER', 'REPLICATE', String(ids[i % ids.length]))),
  );
  await everyNode(replicas, 'follows its master', async (node) =>
    (await node.info('replication')).includes('master_link_status:up'),
  );
  await everyNode(nodes, 'finds the cluster complete', async (node) => {
    const info = String(await node.call('CLUSTER', 'INFO'));
    const followers = (await clusterNodes(node)).filter((line) => line.includes('slave'));
    return info.includes('cluster_state:ok') && followers.length === replicas.length;
  });
}

/** First and last hash slot of master `index` out of `count`. */
function slotRange(index: number, count: number): [number, number] {
  const start = (i: number) => Math.floor((i * HASH_SLOTS) / count);
  return [start(index), start(index + 1) - 1];
}

async function clusterNodes(node: Redis): Promise<string[]> {
  return String(await node.call('CLUSTER', 'NODES'))
    .trim()
    .split('\n');
}

async function everyNode(
  nodes: readonly Redis[],
  what: string,
  isTrueFor: (node: Redis) => Promise<boolean>,
): Promise<void> {
  const deadlineMs = performance.now() + STEP_TIMEOUT_MS;
  for (const node of nodes) {
    while (!(await isTrueFor(node))) {
      if (performance.now() > deadlineMs) {
        const message = `cluster: not every node ${what} after ${STEP_TIMEOUT_MS} ms`;
        throw new EmbeddedRedisError('REDIS_NOT_STARTED', message);
      }
      await sleep(20);
    }
  }
}
