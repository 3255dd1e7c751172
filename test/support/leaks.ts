import type { Client } from '@piecework/protocol';
import { Cluster, type Redis } from 'ioredis';
import type { Scene } from './given.js';

/*
 * What a test left behind in Redis.
 */

const mastersOf = (client: Client): Redis[] =>
  client instanceof Cluster ? client.nodes('master') : [client as Redis];

/** All keys whose hash tag is one of `tags` (a request's id, a queue's name), sorted. */
export async function keysOf(client: Client, ...tags: readonly string[]): Promise<string[]> {
  const keys: string[] = [];
  for (const node of mastersOf(client)) {
    let cursor = '0';
    do {
      const [next, found] = await node.scan(cursor, 'COUNT', 1_000);
      cursor = next;
      keys.push(...found.filter((key) => tags.some((tag) => key.includes(`{${tag}}`))));
    } while (cursor !== '0');
  }
  return [...new Set(keys)].sort();
}

/** The keys of a request and its queue; `forever`: those of them that would never go by themselves. */
export async function keysLeft(
  { connection, id, queue }: Pick<Scene, 'connection' | 'id' | 'queue'>,
  which: 'all' | 'forever' = 'all',
): Promise<string[]> {
  const keys = await keysOf(connection.client, id, queue.keys.queue);
  if (which === 'all') return keys;
  const left: string[] = [];
  for (const key of keys) if ((await connection.client.pttl(key)) === -1) left.push(key);
  return left;
}
