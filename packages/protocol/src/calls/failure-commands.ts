import { type RequestKeys, requestKeys } from '../contract/keys.js';
import type { Connection } from '../redis/connection.js';
import { redisError } from '../redis/redis-error.js';

/** A failed sub-request as it is kept; texts as they stand in Redis. */
export interface KeptFailure {
  readonly index: number;
  /** Error as JSON. */
  readonly error: string;
  readonly payload: string;
  /** The life of the id in which it failed. */
  readonly generation: number;
  readonly attempts: number;
  readonly crashes: number;
}

/** How many fields of the hash one look goes through; each failure has three. */
const SCANNED = 300;

/** Plain reads of what failed, for one request. Hash slot of `{<id>}`. */
export class FailureCommands {
  readonly keys: RequestKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.keys = requestKeys(id);
  }

  /**
   * One look at all failures, from '0' until the cursor is '0' again: index and error of some, in no
   * order. One may come twice; each that is there from the first look to the last does come.
   */
  async scan(cursor: string): Promise<{ cursor: string; errors: [number, string][] }> {
    const { failed } = this.keys;
    // Fields of an index alone end in a digit: no payload is read here.
    const [next, flat] = await this.#connection.client
      .hscan(failed, cursor, 'MATCH', '*[0-9]', 'COUNT', SCANNED)
      .catch((error: unknown) => {
        throw redisError(error, 'read failures');
      });
    const errors: [number, string][] = [];
    for (let i = 0; i < flat.length; i += 2) errors.push([Number(flat[i]), flat[i + 1] as string]);
    return { cursor: next, errors };
  }

  /** How long the longest payload of the request is, in bytes; 0: not known. */
  async longestPayload(): Promise<number> {
    const known = await this.#connection.client
      .hget(this.keys.request, 'largest')
      .catch((error: unknown) => {
        throw redisError(error, 'read failures');
      });
    return Number(known ?? 0);
  }

  /** Those of `indexes` that are kept as failed, in that order; '' as payload where none is wanted. */
  async pick(indexes: readonly number[], wantPayload: boolean): Promise<KeptFailure[]> {
    if (indexes.length === 0) return [];
    const each = wantPayload ? 3 : 2;
    const fields = indexes.flatMap((index) =>
      [String(index), `${index}:runs`, `${index}:payload`].slice(0, each),
    );
    const values = await this.#connection.client
      .hmget(this.keys.failed, ...fields)
      .catch((error: unknown) => {
        throw redisError(error, 'read failures');
      });
    return indexes.flatMap((index, i) => {
      const [error, runs, payload] = values.slice(i * each, (i + 1) * each);
      if (!error) return [];
      const [generation = 0, attempts = 0, crashes = 0] = (runs ?? '').split(' ').map(Number);
      return [{ index, error, payload: payload ?? '', generation, attempts, crashes }];
    });
  }
}
