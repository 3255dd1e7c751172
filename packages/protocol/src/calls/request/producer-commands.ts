import { TIMES } from '../../contract/defaults.js';
import { type Placed, placed } from '../../contract/lanes.js';
import type { Argument, Client } from '../../redis/client.js';
import { runBehind } from '../../scripts/run-behind.js';
import { callOf, type Reply, run } from '../../scripts/run-script.js';
import { RequestReads } from './request-reads.js';
import { type PipelineReply, submitInPipeline, type WholeRequest } from './submit-pipeline.js';

export type Appended =
  | Placed<Extract<Reply<'append'>, { readonly verdict: 'ok' }>>
  | Exclude<Reply<'append'>, { readonly verdict: 'ok' }>;

export type Created =
  | Reply<'create'>
  /** The connection over which the intent was answered is gone. */
  | { readonly verdict: 'broke' };

export type Sealed = Reply<'seal'>;

/** What a producer does to a request: it creates it, appends items and seals it. Hash slot of `{<id>}`. */
export class ProducerCommands extends RequestReads {
  /**
   * Creates the request. `fields`: field, value, … of its options · `epoch`: number of the connection over which the
   * intent was answered, see run-behind.ts.
   */
  async create(
    generation: number,
    owner: string,
    leaseMs: number,
    fields: readonly Argument[],
    epoch = this.connection.epoch,
  ): Promise<Created> {
    const args = { generation, owner, windowMs: TIMES.createWindowMs, leaseMs, fields };
    const reply = await runBehind(this.connection, epoch, callOf('create', this.keys, args));
    return reply ?? { verdict: 'broke' };
  }

  /** `create`, `append` and `seal` in one round trip; see submit-pipeline.ts. */
  submitInPipeline(whole: WholeRequest): Promise<PipelineReply | undefined> {
    return submitInPipeline(this.connection, this.keys, whole);
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
