import { TIMES } from '../../contract/defaults.js';
import { queueKeys } from '../../contract/keys.js';
import type { Connection } from '../../redis/connection.js';
import { redisError } from '../../redis/redis-error.js';

/** One of the last failed attempts, which the queue remembers. */
export interface QueueError {
  /** When it was noted, by the clock of the worker's machine, in ms since 1970. */
  readonly at: number;
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  /** Boot id. */
  readonly worker: string;
  readonly name: string;
  readonly message: string;
}

/** How many are remembered per queue. */
export const ERRORS_MAX = 100;

/** The last errors of a queue: a summary for operators, not a complete record. Hash slot of `{<queue>}`. */
export class QueueErrors {
  readonly #connection: Connection;
  readonly #key: string;

  constructor(connection: Connection, queue: string) {
    this.#connection = connection;
    this.#key = queueKeys(queue).errors;
  }

  /** Adds these errors, and keeps the latest ERRORS_MAX. A repeated call adds each once. */
  async note(errors: readonly QueueError[]): Promise<void> {
    const latest = errors.slice(-ERRORS_MAX);
    if (latest.length === 0) return;
    const { client } = this.#connection;
    // Each may be repeated alone, so they need no transaction.
    await Promise.all([
      client.zadd(this.#key, ...latest.flatMap((error) => [error.at, JSON.stringify(error)])),
      client.zremrangebyrank(this.#key, 0, -(ERRORS_MAX + 1)),
      client.pexpire(this.#key, TIMES.historyMs),
    ]).catch((error: unknown) => {
      throw redisError(error, 'note errors');
    });
  }

  /** The latest first. */
  async last(): Promise<QueueError[]> {
    const texts = await this.#connection.client
      .zrange(this.#key, '0', String(ERRORS_MAX - 1), 'REV')
      .catch((error: unknown) => {
        throw redisError(error, 'read the errors');
      });
    return texts.map((text) => JSON.parse(text) as QueueError);
  }
}
