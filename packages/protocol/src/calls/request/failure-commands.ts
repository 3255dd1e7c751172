import { type RequestKeys, requestKeys } from '../../contract/keys.js';
import type { Connection } from '../../redis/connection.js';
import { redisError } from '../../redis/redis-error.js';
import { readFields } from './read-fields.js';

/** A failed sub-request as it is stored. */
export interface KeptFailure {
  readonly index: number;
  /** Error as JSON. */
  readonly error: string;
  readonly payload: string;
  /** The generation of the request in which it failed. */
  readonly generation: number;
  readonly attempts: number;
  readonly crashes: number;
}

/** How many fields of the hash one scan reads; each failure has three. */
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
   * Reads one page of the failures: index and error of some, in no order. Start with cursor '0', and repeat until it is
   * '0' again. A failure may come twice. Each that exists from the first page to the last comes.
   */
  async scan(cursor: string): Promise<{ cursor: string; errors: [number, string][] }> {
    const { failed } = this.keys;
    // Only the fields with errors end in a digit, so no payload is read.
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
    const { largest } = await readFields(this.#connection.client, this.keys, ['largest']);
    return Number(largest);
  }

  /** How many sub-requests the request counts as failed although no failure is kept any more; 0: all is well. */
  async missing(): Promise<number> {
    const { client } = this.#connection;
    const isEmpty = async () => (await client.exists(this.keys.failed)) === 0;
    try {
      if (!(await isEmpty())) return 0;
      const { failed } = await readFields(client, this.keys, ['failed']);
      // The first failure may have come meanwhile.
      return (await isEmpty()) ? Number(failed) : 0;
    } catch (error) {
      throw redisError(error, 'read failures');
    }
  }

  /** The failures among `indexes`, in that order. Without `wantPayload` their payload is ''. */
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
