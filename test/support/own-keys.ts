import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@piecework/protocol';
import { Cluster, type Redis } from 'ioredis';
import { stateOf } from './compact.js';
import { sharedServer } from './redis.js';

/*
 * Which keys of a server are a test's own. Names of tests (given.ts, freshName) are used by nobody
 * else, so on a server that others use as well, names tell.
 */

function mastersOf(client: Client): Redis[] {
  if (!(client instanceof Cluster)) return [client as Redis];
  const masters = client.nodes('master');
  // "There are no keys" would be no finding then.
  if (masters.length === 0) throw new Error('a cluster that nobody has asked yet has no nodes');
  return masters;
}

/** All keys of a server, or of the masters of a cluster, sorted. */
export async function allKeys(client: Client): Promise<string[]> {
  // A cluster is known once it was asked anything.
  if (client instanceof Cluster && client.status === 'wait') await client.ping();
  for (let tries = 1; ; tries += 1) {
    try {
      return await keysOfAll(client);
    } catch (error) {
      // The client of a node goes with what is known of the cluster, whatever is under way on it.
      if (tries === 10 || !(client instanceof Cluster)) throw error;
      await sleep(100);
    }
  }
}

async function keysOfAll(client: Client): Promise<string[]> {
  const keys = new Set<string>();
  for (const node of mastersOf(client)) {
    for await (const found of node.scanStream({ count: 1_000 })) {
      for (const key of found as string[]) keys.add(key);
    }
  }
  return [...keys].sort();
}

/** All keys that have `name` in their own, sorted. */
export async function keysNaming(client: Client, name: string): Promise<string[]> {
  return (await allKeys(client)).filter((key) => key.includes(name));
}

/** The id that a key of a request's own side carries. */
const idOf = (key: string) => /\{(.+)\}$/.exec(key)?.[1];

/**
 * The keys of the test that has `queue`, sorted: on a server of ours all there are, on one of others
 * those that carry the name of the queue or of a request in it.
 */
export async function keysOfTest(client: Client, queue: string): Promise<string[]> {
  const keys = await allKeys(client);
  if (!sharedServer) return keys;
  const ids = new Set<string | undefined>();
  for (const key of keys) {
    if (!key.startsWith('request:{')) continue;
    const { queue: ofQueue } = await stateOf(client, key);
    if (ofQueue === queue) ids.add(idOf(key));
  }
  return keys.filter((key) => key.includes(queue) || ids.has(idOf(key)));
}

/** Ids among `keys` that a stranger might use as well: neither named by us nor random. */
export function foreignIds(keys: readonly string[]): string[] {
  const ids = keys.filter((key) => key.startsWith('request:{')).map(idOf);
  const ours = /^[\w-]{21,22}$|^(flow|request)-[a-z0-9]+-\d+/;
  return ids.filter((id): id is string => id !== undefined && !ours.test(id));
}
