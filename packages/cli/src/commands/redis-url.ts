import { InvalidOptionError, isRedisUrl } from '@piecework/protocol/contract';

/**
 * The URL of Redis for a command that does not start one: `--redis`, else REDIS_URL.
 * @throws InvalidOptionError when neither is given
 */
export function existingRedis(given: string | undefined): string {
  const url = given ?? process.env['REDIS_URL'];
  if (!url) throw new InvalidOptionError('--redis', url, 'a Redis URL, here or in REDIS_URL');
  if (!isRedisUrl(url)) throw new InvalidOptionError('REDIS_URL', url, 'a Redis URL');
  return url;
}
