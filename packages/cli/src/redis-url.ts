import { InvalidOptionError, isRedisUrl } from '@piecework/protocol';
import { Piecework } from 'piecework';

/**
 * The Redis of a command that works on what is there already: `--redis`, else REDIS_URL.
 * @throws InvalidOptionError when neither is given
 */
export function existingRedis(given: string | undefined): string {
  const url = given ?? process.env['REDIS_URL'];
  if (!url) throw new InvalidOptionError('--redis', url, 'a Redis URL, here or in REDIS_URL');
  if (!isRedisUrl(url)) throw new InvalidOptionError('REDIS_URL', url, 'a Redis URL');
  return url;
}

/**
 * Producer, notifier and admin of a command that works on what is there already.
 * @throws InvalidOptionError · ConnectionError, ServerError: at once, not after many tries
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
