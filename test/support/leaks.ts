import type { Client } from '@piecework/protocol';
import type { Scene } from './given.js';
import { allKeys } from './own-keys.js';

/*
 * What a test left behind in Redis.
 */

/** All keys whose hash tag is one of `tags` (a request's id, a queue's name), sorted. */
export async function keysOf(client: Client, ...tags: readonly string[]): Promise<string[]> {
  const keys = await allKeys(client);
  return keys.filter((key) => tags.some((tag) => key.includes(`{${tag}}`)));
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
