import { ConnectionError, type PieceworkError } from '../contract/errors.js';
import { type Client, isCluster } from './client.js';
import { sentinelsFailed } from './ioredis-internals/error-texts.js';
import { redisError } from './redis-error.js';

/** No Sentinel names a server, so there is none to wait for (as there would be during a failover). */
export class NoSentinel extends ConnectionError {}

/** An error of a connection as one of ours. When Sentinels were asked, it names them. */
export function connectError(error: unknown, client: Client): PieceworkError {
  const failed = sentinelsFailed(error);
  if (!failed || isCluster(client)) return redisError(error, 'connect');
  const { sentinels, name } = client.options;
  const named = (sentinels ?? [])
    .map(({ host = 'localhost', port = 26_379 }) => `${host}:${port}`)
    .join(', ');
  const { last } = failed;
  // The Sentinels answered, and none named a server.
  if (last === undefined)
    return new NoSentinel(
      `connect: no Sentinel of ${named} names a server of '${name}'; see that the name is right`,
    );
  const why = redisError(new Error(last || 'ECONNREFUSED'), `connect: by the Sentinels ${named}`);
  if (!(why instanceof ConnectionError)) return why;
  return new NoSentinel(
    `connect: none of the Sentinels ${named} answers; see that they run, and that hosts and ports are right`,
  );
}
