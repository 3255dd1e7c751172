import { TIMES } from '../../contract/defaults.js';
import { type Placed, placed } from '../../contract/lanes.js';
import type { Client } from '../../redis/client.js';
import { runBehind } from '../../scripts/run-behind.js';
import { callOf, type Reply, run } from '../../scripts/run-script.js';
import { RequestReads } from './request-reads.js';

export type Appended =
  | Placed<Extract<Reply<'append'>, { readonly verdict: 'ok' }>>
  | Exclude<Reply<'append'>, { readonly verdict: 'ok' }>;

/** How a request is created. */
export interface Creation {
  readonly generation: number;
  /** Name of the submission. */
  readonly owner: string;
  readonly leaseMs: number;
  /** JSON array of field, value, … */
  readonly options: string;
  /** Name of the call. @default '' */
  readonly call?: string | undefined;
  /** All its items, encoded: it is sealed with them. @default none: it is open */
  readonly items?: readonly string[] | undefined;
}

type CreateReply = Reply<'create'>;
type SealedAtOnce = Extract<CreateReply, { readonly verdict: 'sealed' }>;

export type Created =
  | Placed<SealedAtOnce>
  | Exclude<CreateReply, SealedAtOnce>
  /** The connection over which the intent was answered is gone. */
  | { readonly verdict: 'broke' };

export type Sealed = Reply<'seal'>;

/** What a producer does to a request: it creates it, appends items and seals it. Hash slot of `{<id>}`. */
export class ProducerCommands extends RequestReads {
  /** Creates the request. `epoch`: number of the connection over which the intent was answered, see run-behind.ts. */
  async create(
    { call = '', items = [], ...rest }: Creation,
    epoch = this.connection.epoch,
  ): Promise<Created> {
    const args = { ...rest, call, items, windowMs: TIMES.createWindowMs };
    const reply = await runBehind(this.connection, epoch, callOf('create', this.keys, args));
    return reply?.verdict === 'sealed' ? placed(reply) : (reply ?? { verdict: 'broke' });
  }

  /** Adds encoded items. `first`: this producer's number of the first item. */
  async append(
    generation: number,
    producer: string,
    first: number,
    payloads: readonly string[],
  ): Promise<Appended> {
    const args = { generation, producer, first, payloads };
    const reply = await run(this.connection.client, 'append', this.keys, args);
    return reply.verdict === 'ok' ? placed(reply) : reply;
  }

  /** Renews the producer lease. The reply says whether the request is still open. */
  renewProducer(generation: number): Promise<Reply<'renew-producer'>> {
    return run(this.connection.client, 'renew-producer', this.keys, { generation });
  }

  /**
   * Declares that no more items follow. `sent`: how many items this producer appended in total · `client`: the
   * connection; a WAIT counts only the writes of its own.
   */
  seal(
    generation: number,
    producer: string,
    sent: number,
    client: Client = this.connection.client,
  ): Promise<Sealed> {
    const { channel } = this.keys;
    return run(client, 'seal', this.keys, { generation, producer, sent, channel });
  }
}
