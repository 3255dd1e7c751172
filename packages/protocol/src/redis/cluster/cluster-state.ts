import type { ClusterNode, RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import { type Cluster, Redis } from '../ioredis.js';
import { namedNodes } from '../ioredis-internals/cluster-internals.js';

/*
 * A cluster client does not accept a cluster with unserved hash slots, and does not report it: it reconnects again and
 * again. So when a client did not become ready, we ask each node for the reason. It also takes the cluster of the first
 * node that answers. So before it connects, we ask each node whether it is in the same cluster.
 */

/** How long we wait for the answer of a node, in ms. */
const ASK_MS = 1_000;

/**
 * Why the cluster is down according to one of its nodes ("127.0.0.1:7001 …"); undefined when none says so. An error:
 * what kept the first of the nodes that the user named from answering, if none did. A cluster client does not tell it.
 */
export async function whyDown(cluster: Cluster): Promise<string | Error | undefined> {
  const errors: Error[] = [];
  const nodes = aloneAtNodes(cluster);
  const said = await Promise.all(
    nodes.map(async (node) => {
      const info = await ask(
        node,
        async (client) => String(await client.cluster('INFO')),
        (error) => errors.push(error),
      );
      const field = (name: string) => new RegExp(`^${name}:(\\w+)`, 'm').exec(info ?? '')?.[1];
      if (field('cluster_state') !== 'fail') return undefined;
      return `${placeOf(node)} finds ${field('cluster_slots_ok')} of 16384 hash slots served`;
    }),
  );
  return (
    said.find((why) => why !== undefined) ?? (errors.length < nodes.length ? undefined : errors[0])
  );
}

/**
 * Why the nodes that the user named are not nodes of one cluster, with the cure; undefined when they are, as far as they
 * answer.
 */
export async function whyNoCluster(cluster: Cluster): Promise<string | undefined> {
  const nodes = new Map(aloneAtNodes(cluster).map((node) => [placeOf(node), node]));
  const known = await Promise.all(
    [...nodes].map(async ([place, node]) => ({ place, ids: await ask(node, knownIds) })),
  );
  const singles = known.flatMap(({ place, ids }) => (ids === 'single' ? [place] : []));
  const inClusters = known.flatMap(({ place, ids }) =>
    ids instanceof Set && ids.size > 0 ? [{ place, ids }] : [],
  );
  if (singles.length > 0) {
    const cure = inClusters.length > 0 ? 'leave it out' : 'name one URL, without commas';
    return `${singles[0]} is a single server, and no node of a cluster: ${cure}`;
  }
  const [first] = inClusters;
  const other = inClusters.find(({ ids }) => ![...ids].some((id) => first?.ids.has(id)));
  if (!first || !other) return undefined;
  return `${first.place} and ${other.place} are nodes of different clusters: name only nodes of one`;
}

/** The ids of the nodes that serve slots according to this one, or follow such a node. */
async function knownIds(client: Redis): Promise<Set<string> | 'single'> {
  try {
    const ranges = await client.cluster('SLOTS');
    return new Set(ranges.flatMap(([, , ...nodes]) => nodes.map(([, , id]) => id)));
  } catch (error) {
    if (/cluster support disabled/i.test((error as Error).message)) return 'single';
    throw error;
  }
}

const placeOf = ({ host = '127.0.0.1', port }: RedisOptions) => `${host}:${port}`;

/** Options to connect to each node that the user named, alone. */
export function aloneAtNodes(cluster: Cluster): RedisOptions[] {
  const at = (node: ClusterNode): RedisOptions =>
    typeof node === 'object' ? node : { port: Number(node) };
  const once = { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 } as const;
  const { redisOptions } = cluster.options;
  return namedNodes(cluster).map((node) => ({ ...redisOptions, ...at(node), ...once }));
}

/** What one node answers; undefined: nothing, or an error, with which `failed` is called. */
async function ask<T>(
  node: RedisOptions,
  call: (client: Redis) => Promise<T>,
  failed: (error: Error) => void = () => {},
): Promise<T | undefined> {
  // A longer timer would keep the process from ending.
  const client = new Redis({ ...node, disconnectTimeout: 50 });
  // It says more than the error of the call.
  let reported: Error | undefined;
  client.on('error', (error) => {
    reported ??= error;
  });
  const answer = client
    .connect()
    .then(() => call(client))
    .catch((error: Error) => {
      failed(reported ?? error);
      return undefined;
    });
  const answered = await pTimeout(answer, { milliseconds: ASK_MS, fallback: () => undefined });
  client.disconnect();
  return answered;
}
