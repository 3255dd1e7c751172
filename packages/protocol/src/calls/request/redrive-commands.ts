import { type RequestKeys, requestKeys } from '../../contract/keys.js';
import type { Connection } from '../../redis/connection.js';
import { runBehind } from '../../scripts/run-behind.js';
import { callOf, type Reply, run } from '../../scripts/run-script.js';
import { recentEnds } from './recent-ends.js';

export type Reopened =
  | Exclude<Reply<'redrive'>, { readonly verdict: 'clearing' }>
  /** The connection over which the intent was answered is gone. */
  | { readonly verdict: 'broke' };

/** How many bytes of payloads one call moves, about. */
const MAX_BYTES = 1_000_000;

/** The scripts of a redrive, for one request. Hash slot of `{<id>}`. */
export class RedriveCommands {
  readonly keys: RequestKeys;
  readonly #connection: Connection;

  constructor(connection: Connection, id: string) {
    this.#connection = connection;
    this.keys = requestKeys(id);
  }

  /**
   * Opens the next generation of a complete request, if one of these indexes is failed still; without indexes in any
   * case. `epoch`: number of the connection over which the intent was answered, see run-behind.ts.
   */
  async open(
    generation: number,
    owner: string,
    leaseMs: number,
    indexes: readonly number[] = [],
    epoch = this.#connection.epoch,
  ): Promise<Reopened> {
    let clearing = '0';
    for (;;) {
      const args = { generation, owner, leaseMs, clearing, indexes };
      const call = callOf('redrive', this.keys, args);
      const reply = await runBehind(this.#connection, epoch, call);
      if (!reply) return { verdict: 'broke' };
      // cure: what was redriven is not read from memory
      recentEnds(this.#connection).forget(this.keys.id);
      if (reply.verdict !== 'clearing') return reply;
      clearing = reply.from;
    }
  }

  /** Moves failed sub-requests into that generation. Indexes must ascend, also from call to call. */
  runAgain(
    generation: number,
    owner: string,
    indexes: readonly number[],
    maxBytes = MAX_BYTES,
  ): Promise<Reply<'run-again'>> {
    const args = { generation, owner, maxBytes, indexes };
    return run(this.#connection.client, 'run-again', this.keys, args);
  }
}
