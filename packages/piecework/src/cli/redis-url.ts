import { InvalidOptionError, REDIS_URL } from '@piecework/protocol';

/**
 * The Redis of a command that works on what is there already: `--redis`, else REDIS_URL.
 * @throws InvalidOptionError when neither is given
 */
export function existingRedis(given: string | undefined): string {
  const url = given ?? process.env['REDIS_URL'];
  if (!url) throw new InvalidOptionError('--redis', url, 'a Redis URL, here or in REDIS_URL');
  if (!REDIS_URL.test(url)) throw new InvalidOptionError('REDIS_URL', url, 'a Redis URL');
  return url;
}
