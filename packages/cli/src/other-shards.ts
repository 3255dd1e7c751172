import { Piecework } from 'piecework';
import { existingRedis } from './redis-url.js';

/**
 * In words, when a queue in which nothing is open seems to have another number of shards: a queue is there, with
 * requests or workers, that a shard of it would be. Undefined also when that could not be looked at.
 */
export async function otherShards(values: {
  redis?: string | undefined;
  queue: string;
  shards: number;
}): Promise<string | undefined> {
  const { queue, shards } = values;
  const names = shards === 1 ? [`${queue}.0`] : [queue, `${queue}.${shards}`];
  for (const name of names) {
    try {
      await using pw = new Piecework({ redis: existingRedis(values.redis), queue: name });
      const { open, workers } = await pw.admin.counts();
      if (open > 0 || workers > 0)
        return `the queue ${name} has open requests: ${open}, workers: ${workers}`;
    } catch {
      // Its user may have no right to other queues.
    }
  }
  return undefined;
}

/** What to do about it. */
export const SAME_SHARDS =
  '--shards is the same number for all that use a queue: say that of its workers';
