import { type Cluster, type ClusterNode, Redis, type RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import { cloneableSettings } from './cloneable-settings.js';

/*
 * A cluster client takes no cluster that is not whole, and says nothing of it: it connects again and
 * again. So whoever waited in vain for it to be ready asks the nodes themselves, each alone.
 */

/** How long a node has for its answer, in ms. */
const ASK_MS = 1_000;

/** What a node says that finds the cluster down, such as "127.0.0.1:7001 …"; undefined when none does. */
export async function whyDown(cluster: Cluster): Promise<string | undefined> {
  const nodes = nodesOf(cluster);
  const said = await Promise.all(nodes.map((node) => ask(node)));
  return said.find((why) => why !== undefined);
}

/** Those that were named at first, with what all nodes share; none where that cannot be told. */
function nodesOf(cluster: Cluster): RedisOptions[] {
  try {
    const settings = cloneableSettings(cluster);
    if (!('nodes' in settings)) return [];
    const at = (node: ClusterNode): RedisOptions =>
      typeof node === 'object' ? node : { port: Number(node) };
    return settings.nodes.map((node) => ({ ...settings.options.redisOptions, ...at(node) }));
  } catch {
    return [];
  }
}

async function ask(node: RedisOptions): Promise<string | undefined> {
  const once = { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 } as const;
  // Its timer would keep a process from ending for so long.
  const client = new Redis({ ...node, ...once, disconnectTimeout: 50 });
  client.on('error', () => {});
  const answer = client
    .connect()
    .then(async () => String(await client.cluster('INFO')))
    .catch(() => '');
  const info = await pTimeout(answer, { milliseconds: ASK_MS, fallback: () => '' });
  client.disconnect();
  const field = (name: string) => new RegExp(`^${name}:(\\w+)`, 'm').exec(info)?.[1];
  if (field('cluster_state') !== 'fail') return undefined;
  const served = field('cluster_slots_ok');
  return `${node.host ?? '127.0.0.1'}:${node.port} finds ${served} of 16384 hash slots served`;
}
