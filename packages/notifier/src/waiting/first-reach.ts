import { type Connection, ConnectionError, NoSentinel, PieceworkError } from '@piecework/protocol';

/**
 * Waiting callers bear all that passes: a connection that breaks, a failover, a server that loads. But where
 * no Redis ever was, such as behind a wrong port, there is nothing to wait for, and the wait fails at once, as every
 * other call does. After the first answer this class asks nothing any more.
 */
export class FirstReach {
  readonly #connection: Connection;
  #reached = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Why waiting is pointless; undefined when it is not, or may not be. Never rejects. */
  async refusal(): Promise<unknown> {
    if (this.#reached) return undefined;
    const seen = this.#connection.watchReach();
    try {
      await this.#connection.check();
      this.#reached = true;
      return undefined;
    } catch (error) {
      if (!(error instanceof PieceworkError)) return error;
      const why = await this.#connection.explained(error);
      // Sentinels that answer may name a master that has just died: they soon name another one.
      const handsOver = this.#connection.hasSentinels && !(why instanceof NoSentinel);
      if (why instanceof ConnectionError) return seen.reached() || handsOver ? undefined : why;
      // A user without the right to this check may have every right that waiting needs.
      return why.retryable || why.code === 'NO_RIGHT' ? undefined : why;
    }
  }
}
