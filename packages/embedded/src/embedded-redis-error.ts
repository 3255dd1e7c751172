import { PieceworkError } from '@piecework/protocol';

/**
 * No embedded Redis can be had; trying again on an unchanged machine gives the same answer.
 * - `NO_REDIS`: nothing on this machine can serve as one; the message says what to install.
 * - `REDIS_NOT_STARTED`: one was found, but it ended or stayed silent; the message ends with
 *   the last lines of its log.
 * - `REDIS_ENDED`: it ended although nobody asked it to; the message ends likewise.
 */
export class EmbeddedRedisError extends PieceworkError {
  override readonly name = 'EmbeddedRedisError';
  declare readonly code: 'NO_REDIS' | 'REDIS_NOT_STARTED' | 'REDIS_ENDED';

  constructor(code: EmbeddedRedisError['code'], message: string) {
    super(message, { code });
  }
}
