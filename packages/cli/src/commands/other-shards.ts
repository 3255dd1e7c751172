import { existingRedis } from '../flags/redis-url.js';

/**
 * Says in words when a queue without open requests seems to have another number of shards: then there is a queue with
 * requests or workers that has the name of one of its shards. Undefined also when that could not be checked.
 */
export async function otherShards(values: {
  redis?: string | undefined;
  queue: string;
  shards: number;
}): Promise<string | undefined> {
  const { queue, shards } = values;
  const { Piecework } = await import('piecework/client');
  const names = shards === 1 ? [`${queue}.0`] : [queue, `${queue}.${shards}`];
  for (const name of names) {
    try {
      await using pw = new Piecework({ redis: existingRedis(values.redis), queue: name });
      const { open, workers } = await pw.admin.counts();
      if (open > 0 || workers > 0)
        return `the queue ${name} has open requests: ${open}, workers: ${workers}`;
    } catch {
      // The user may have no right to other queues.
    }
  }
  return undefined;
}

/** What to do about it. */
export const SAME_SHARDS = 'use the same --shards as the workers of the queue';
