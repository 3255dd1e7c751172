import { Piecework } from 'piecework/client';
import { existingRedis } from './redis-url.js';

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
  const pw = new Piecework({ redis: existingRedis(values.redis), queue, shards });
  try {
    await pw.check();
    return pw;
  } catch (error) {
    await pw.close();
    throw error;
  }
}
