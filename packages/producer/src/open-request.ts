import {
  AbortError,
  ClosedError,
  type Complete,
  type Connection,
  DroppedError,
  encodePayload,
  Patience,
  PieceworkError,
  type QueueCommands,
  RequestCommands,
  SealedError,
} from '@piecework/protocol';
import { Appender } from './appender.js';
import { confirmDurability } from './durability.js';
import type { CheckedOptions } from './options.js';

/**
 * An open request, as one producer sees it: items are added until somebody seals it. While this
 * object is open it renews the producer lease, so that the request is not taken for orphaned.
 */
export class OpenRequest implements AsyncDisposable {
  readonly id: string;
  readonly generation: number;
  /** Whether somebody else had opened it. */
  readonly joined: boolean;
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #commands: RequestCommands;
  readonly #producer: string;
  readonly #options: CheckedOptions;
  readonly #appender: Appender;
  readonly #onClose: (request: OpenRequest) => void;
  readonly #stopping = new AbortController();
  /** For what adds, which a close ends, and for what ends the request. */
  readonly #adding: Patience;
  readonly #ending: Patience;
  #renewal: NodeJS.Timeout | undefined;
  #sealed = false;
  #confirmed = false;
  #closed = false;

  constructor(
    connection: Connection,
    queue: QueueCommands,
    parts: {
      id: string;
      generation: number;
      producer: string;
      options: CheckedOptions;
      /** The number of its first item. @default 0 */
      firstNumber?: number;
      joined?: boolean;
      /** Ends every trying again, as when the connection is about to close. */
      closing: AbortSignal;
    },
    onClose: (request: OpenRequest) => void,
  ) {
    this.#connection = connection;
    this.id = parts.id;
    this.generation = parts.generation;
    this.joined = parts.joined ?? false;
    this.#queue = queue;
    this.#commands = new RequestCommands(connection, parts.id);
    this.#producer = parts.producer;
    this.#options = parts.options;
    this.#onClose = onClose;
    const { closing } = parts;
    const forMs = parts.options.unavailableMs;
    const signals = [closing, this.#stopping.signal];
    this.#adding = new Patience(connection, parts.id, { forMs, signals });
    this.#ending = new Patience(connection, parts.id, { forMs, signals: [closing] });
    this.#appender = new Appender({
      queue,
      request: this.#commands,
      generation: parts.generation,
      producer: parts.producer,
      window: parts.options.window,
      patience: this.#adding,
      firstNumber: parts.firstNumber,
    });
    // A renewal that fails is tried again at the next; the lease bears two that are missing.
    const renew = () => void this.#renew().catch(() => {});
    this.#renewal = setInterval(renew, parts.options.producerLeaseMs / 3);
  }

  async #renew(): Promise<void> {
    const { verdict } = await this.#commands.keepOpen(this.generation);
    if (verdict !== 'ok') this.#rest();
  }

  /**
   * Adds items. Resolves when there is room for more; `flush` and `seal` wait until all are in.
   * One that failed has ended the adding of this handle: what is in, is in, and can be sealed by others.
   * @throws PayloadError before it is sent · SealedError · DroppedError · ClosedError ·
   *   ServerError, ConnectionError after `unavailableMs`: not added · IndeterminateError: it may be added
   */
  async append(...items: readonly unknown[]): Promise<void> {
    this.#throwIfClosed();
    const { maxPayloadBytes } = this.#options;
    const payloads = items.map((item) => encodePayload(item, maxPayloadBytes));
    for (const payload of payloads) await this.#appender.add(payload);
  }

  /** Adds an item that is already encoded; a promise, if there is one, resolves when there is room. */
  appendEncoded(payload: string): Promise<void> | undefined {
    this.#throwIfClosed();
    return this.#appender.add(payload);
  }

  /** How many items this producer has appended. */
  get appended(): number {
    return this.#appender.added;
  }

  /** Waits until everything appended so far is in Redis. */
  async flush(): Promise<void> {
    this.#throwIfClosed();
    await this.#appender.flush();
  }

  /**
   * No more items will be added, by anybody. With none at all the request completes here. May be
   * asked again after any error that is `retryable`.
   * @throws SealedError when it was cancelled · DroppedError · ServerError, ConnectionError after
   *   `unavailableMs`: not sealed · IndeterminateError: it may be sealed · DurabilityError: it is
   */
  async seal(): Promise<void> {
    const { generation } = this;
    if (!this.#sealed) {
      this.#throwIfClosed();
      await this.#appender.flush();
      const { sent } = this.#appender;
      const sealed = await this.#ending.call(() =>
        this.#commands.seal(generation, this.#producer, sent),
      );
      if (sealed.verdict === 'gone') throw new DroppedError(this.id);
      if (sealed.verdict === 'cancelling') throw new SealedError(this.id, sealed.verdict);
      if (sealed.verdict === 'gap') throw new SealedError(this.id, 'missing items that were sent');
      this.#sealed = true;
      if (sealed.verdict === 'complete') await this.#finish(sealed);
      this.close();
    }
    if (this.#confirmed) return;
    const seal = { generation, producer: this.#producer, sent: this.#appender.sent };
    await confirmDurability(this.#connection, this.#commands, seal, this.#options.durability);
    this.#confirmed = true;
  }

  /**
   * Cancels the request: nothing that does not run yet will.
   * @throws ServerError, ConnectionError after `unavailableMs` · IndeterminateError
   */
  async cancel(): Promise<void> {
    const cancelled = await this.#ending.call(() => this.#commands.cancel(this.generation));
    if (cancelled.verdict === 'complete') await this.#finish(cancelled);
    else if (cancelled.verdict === 'cancelling')
      await this.#elseAgenda(() => this.#queue.note(this.id, this.generation, 0));
    this.close();
  }

  /** Gives up what is not in yet, as when the caller's signal aborts. */
  abort(reason: unknown): void {
    this.#stopping.abort();
    this.#appender.stop(new AbortError(`submission of ${this.id}`, reason));
  }

  /** Stops renewing the lease and leaves the request as it is, open for other producers. */
  close(): void {
    this.#closed = true;
    this.#stopping.abort();
    this.#appender.stop(new ClosedError(`open request ${this.id}`));
    this.#rest();
  }

  /** Nothing is to be renewed any more. */
  #rest(): void {
    clearInterval(this.#renewal);
    this.#renewal = undefined;
    this.#onClose(this);
  }

  #throwIfClosed(): void {
    if (this.#closed) throw new ClosedError(`open request ${this.id}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async #finish({ outcome, spentAt }: Complete): Promise<void> {
    await this.#elseAgenda(() => this.#queue.finish(this.id, this.generation, outcome, spentAt));
  }

  /** The request's own side has it; what the queue side does not learn here, a tick tells it. */
  async #elseAgenda(call: () => Promise<void>): Promise<void> {
    try {
      await this.#ending.call(call);
    } catch (error) {
      if (!(error instanceof PieceworkError && error.retryable)) throw error;
    }
  }
}
