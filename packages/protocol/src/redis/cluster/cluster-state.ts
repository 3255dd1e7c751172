import type { ClusterNode, RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import { cloneableSettings } from '../cloneable-settings.js';
import { type Cluster, Redis } from '../ioredis.js';

/*
 * A cluster client does not accept a cluster with unserved hash slots, and does not report it: it reconnects again and
 * again. So when a client did not become ready, we ask each node for the reason.
 */

/** How long we wait for the answer of a node, in ms. */
const ASK_MS = 1_000;

/** Why the cluster is down according to one of its nodes ("127.0.0.1:7001 …"); undefined when none says so. */
export async function whyDown(cluster: Cluster): Promise<string | undefined> {
  const nodes = nodesOf(cluster);
  const said = await Promise.all(nodes.map((node) => ask(node)));
  return said.find((why) => why !== undefined);
}

/** Options to connect to each node that the user named; none when the settings contain code. */
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
  // A longer timer would keep the process from ending.
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
