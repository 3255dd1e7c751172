import type { Piecework } from 'piecework/client';
import { existingRedis } from '../flags/redis-url.js';

/**
 * Opens Piecework for a command that does not start a Redis.
 * @throws InvalidOptionError · ConnectionError, ServerError: after one attempt
 */
export async function openPiecework(values: {
  redis?: string | undefined;
  queue: string;
  shards: number;
}): Promise<Piecework> {
  const { queue, shards } = values;
  const redis = existingRedis(values.redis);
  // Loaded on demand: help and wrong usage need no client.
  const { Piecework } = await import('piecework/client');
  const pw = new Piecework({ redis, queue, shards });
  try {
    await pw.check();
    return pw;
  } catch (error) {
    await pw.close();
    throw error;
  }
}
