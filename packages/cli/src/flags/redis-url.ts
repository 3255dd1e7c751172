import { HIDDEN, InvalidOptionError, isRedisUrl } from '@piecework/protocol/contract';

const FORM = 'a Redis URL such as redis://localhost:6379';

/**
 * The URL of Redis that was given: `--redis`, else REDIS_URL.
 * @throws InvalidOptionError when neither is given, or it is no such URL
 */
export function existingRedis(given: string | undefined): string {
  const url = given ?? process.env['REDIS_URL'];
  if (!url)
    throw new InvalidOptionError(
      '--redis',
      undefined,
      `${FORM}, here or in REDIS_URL; piecework dev starts a Redis to try`,
    );
  if (!isRedisUrl(url))
    throw new InvalidOptionError('REDIS_URL', HIDDEN, `${FORM}, or another form of --redis`);
  return url;
}
