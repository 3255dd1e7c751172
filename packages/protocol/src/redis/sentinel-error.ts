import { Cluster } from 'ioredis';
import { ConnectionError, type PieceworkError } from '../contract/errors.js';
import type { Client } from './client.js';
import { redisError } from './redis-error.js';

const ALL_ASKED = /^All sentinels are unreachable.*?(?: Last error: (.*))?$/s;

/** No Sentinel leads to a server: there is none to wait for, as there is behind one that just failed. */
export class NoSentinel extends ConnectionError {}

/** Whether a client says that it has asked all of its Sentinels in vain; it goes on asking. */
export const askedInVain = (error: unknown): boolean =>
  error instanceof Error && ALL_ASKED.test(error.message);

/** What a client said of its connection, as one of our errors; of Sentinels it names which were asked. */
export function connectError(error: unknown, client: Client): PieceworkError {
  const asked = error instanceof Error ? ALL_ASKED.exec(error.message) : null;
  if (!asked || client instanceof Cluster) return redisError(error, 'connect');
  const { sentinels, name } = client.options;
  const named = (sentinels ?? [])
    .map(({ host = 'localhost', port = 26_379 }) => `${host}:${port}`)
    .join(', ');
  const [, last] = asked;
  // They answered, and not with a server.
  if (last === undefined)
    return new NoSentinel(
      `connect: no Sentinel of ${named} names a server of '${name}'; see that the name is right`,
    );
  const why = redisError(new Error(last), `connect: by the Sentinels ${named}`);
  if (!(why instanceof ConnectionError)) return why;
  return new NoSentinel(
    `connect: none of the Sentinels ${named} answers; see that they run, and that hosts and ports are right`,
  );
}
