import {
  AbortError,
  ClosedError,
  type Connection,
  Patience,
  ProducerCommands,
  type Shards,
} from '@piecework/protocol';
import { checkDurability, confirmDurability } from '../seal/durability.js';
import { type SealOf, type Site, sealRequest } from '../seal/seal-request.js';
import { type CreatedRequest, createRequest, type Found } from './create-request.js';
import { type Asked, expectSame, expectSameOptions } from './idempotency.js';
import type { CheckedOptions } from './options.js';
import { announce } from './small.js';

/** A request whose items are all in. */
export interface Submitted {
  readonly id: string;
  /** Rises with every redrive, and when the id is used for a new request. */
  readonly generation: number;
  /** How many sub-requests this submission added. */
  readonly total: number;
  /**
   * Whether this call made the request. False: the request existed already, under the same id or key of
   * deduplication, whichever process submitted it. It may be an earlier call for the same that failed half-way.
   */
  readonly created: boolean;
}

/** What every call of a producer shares. */
export interface ProducerContext {
  readonly connection: Connection;
  readonly shards: Shards;
  /** Aborts when the producer closes. */
  readonly closing: AbortSignal;
}

/** What is submitted, and in which way. */
export interface AskedSubmission extends Asked {
  /** All its items, encoded, when they are known and fit into one call. */
  readonly small?: readonly string[] | undefined;
  /** Whether this call generated the id, so that no other process knows it. */
  readonly isNewId?: boolean;
  /** Names this call: of several that ask for the same, the request records which one made it. */
  readonly call?: string | undefined;
  /** A channel of this process, where the end of the request is published too; '': none. */
  readonly notify?: string;
}

/** How long the calls for one request are tried: until `unavailableMs`, an abort, or the close of the producer. */
export const patienceOf = (
  { connection, closing }: ProducerContext,
  id: string,
  { unavailableMs, signal }: Pick<CheckedOptions, 'unavailableMs' | 'signal'>,
): Patience => new Patience(connection, id, { forMs: unavailableMs, signals: [closing, signal] });

/** Names what its user has closed. */
export const closedError = ({ owner }: Connection) => new ClosedError(owner ?? 'this producer');

/** The error of a call that failed: ClosedError or AbortError when the close or the signal ended it. */
export const reasonOf = (
  { connection, closing }: ProducerContext,
  id: string,
  { signal }: Pick<CheckedOptions, 'signal'>,
  error: unknown,
): unknown => {
  if (closing.aborted) return closedError(connection);
  return signal?.aborted ? new AbortError(`submission of ${id}`, error) : error;
};

/** One submission on its way into Redis: creates the request, or finds it, and acknowledges it. */
export class Submission {
  readonly asked: AskedSubmission;
  readonly #context: ProducerContext;
  readonly #patience: Patience;

  constructor(context: ProducerContext, asked: AskedSubmission) {
    this.asked = asked;
    this.#context = context;
    this.#patience = patienceOf(context, asked.id, asked.options);
  }

  get #queueName(): string {
    return this.#context.shards.of(this.asked.id).keys.queue;
  }

  /** Where the request is; `queue`: the shard that its state names, else the shard of its id. */
  site(queue = ''): Site {
    const { connection, shards } = this.#context;
    const { id } = this.asked;
    return {
      connection,
      queue: queue ? shards.named(queue) : shards.of(id),
      request: new ProducerCommands(connection, id),
      patience: this.#patience,
    };
  }

  /** The seal of a submission whose items are all in `small`. */
  sealOf(generation: number): SealOf {
    const { owner, small } = this.asked;
    return { generation, producer: owner, sent: small?.length ?? 0 };
  }

  /**
   * Creates the request, or finds the one of its id. If its items are known and few, it is created with them and sealed.
   * @throws as Producer.submit
   */
  async create(): Promise<CreatedRequest> {
    const { connection } = this.#context;
    const { id, options } = this.asked;
    const site = this.site();
    try {
      await this.#patience.reach();
      if (options.durability !== 'none')
        await this.#patience.call(() =>
          checkDurability(connection, site.request, options.durability),
        );
      const { epoch } = connection;
      const made = await createRequest(site, this.asked);
      const { generation, allIn } = made;
      if (!allIn) return made;
      const isCertain = allIn === 'announced' || (await announce(site, generation, allIn));
      if (!isCertain || connection.epoch !== epoch)
        await sealRequest(site, this.sealOf(generation));
      return made;
    } catch (error) {
      throw reasonOf(this.#context, id, options, error);
    }
  }

  /** @throws RequestExistsError when the options of the request that was found differ */
  async expectSameOptions(found: Found): Promise<void> {
    await expectSameOptions(this.#context.connection, this.#queueName, this.asked, found);
  }

  /**
   * Acknowledges a request that exists and takes no items of this call, because it was submitted before.
   * @throws RequestExistsError when it is another one, or not all there
   */
  async foundAgain(found: Found, created: boolean): Promise<Submitted> {
    const { owner } = this.asked;
    await expectSame(this.#context.connection, this.#queueName, this.asked, found);
    const { generation, sealedBy, sent, total, status } = found;
    const isOurs = sealedBy === owner;
    const all = isOurs ? sent : total;
    const seal = { generation, producer: sealedBy, sent };
    if (status === 'complete') return this.acknowledge(seal, all, created);
    // A repetition heals what the queue side has lost, in the shard that the request is in: the number of
    // shards may have changed since it was submitted.
    const { queue } = await this.#patience.call(() => this.site().request.fields('queue'));
    const site = this.site(queue);
    await sealRequest(site, seal);
    return this.acknowledge(seal, all, created, site);
  }

  /** All items are in, and sealed: waits for the durability that was asked for. @throws DurabilityError */
  async acknowledge(
    seal: SealOf,
    total: number,
    created: boolean,
    site = this.site(),
  ): Promise<Submitted> {
    const { id, options } = this.asked;
    if (options.durability !== 'none') await confirmDurability(site, seal, options.durability);
    return { id, generation: seal.generation, total, created };
  }
}
