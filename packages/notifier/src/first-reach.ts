import { type Connection, ConnectionError, NoSentinel, PieceworkError } from '@piecework/protocol';

/**
 * Who waits bears everything that passes: a connection that breaks, a failover, a server that loads. But
 * where no Redis ever was, such as behind a wrong port, there is nothing to wait for, and it is told at once, as to
 * every other call. From the first answer on nothing is asked here any more.
 */
export class FirstReach {
  readonly #connection: Connection;
  #reached = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Why there is nothing to wait for; undefined: there is, or may be. Never rejects. */
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
      // Sentinels that answer may name a master that has just died: they name another one soon.
      const handsOver = this.#connection.hasSentinels && !(why instanceof NoSentinel);
      if (why instanceof ConnectionError) return seen.reached() || handsOver ? undefined : why;
      // A user without the right to ask may have all those that waiting needs.
      return why.retryable || why.code === 'NO_RIGHT' ? undefined : why;
    }
  }
}
