import { PieceworkError } from '@piecework/protocol';

/**
 * There is no embedded Redis. Another attempt on an unchanged machine fails in the same way.
 * - `NO_REDIS`: no server program was found; the message says what to install.
 * - `REDIS_NOT_STARTED`: a server was started, but ended or did not answer. The message says that its port is taken, or
 *   ends with the last lines of its log.
 * - `REDIS_ENDED`: the server ended by itself; the message names the signal that ended it, if one did, and ends with the
 *   last lines of its log.
 */
export class EmbeddedRedisError extends PieceworkError {
  override readonly name = 'EmbeddedRedisError';
  declare readonly code: 'NO_REDIS' | 'REDIS_NOT_STARTED' | 'REDIS_ENDED';

  constructor(code: EmbeddedRedisError['code'], message: string) {
    super(message, { code });
  }
}
