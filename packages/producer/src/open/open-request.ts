import {
  AbortError,
  ClosedError,
  type Connection,
  ControlCommands,
  encodePayload,
  finishOnQueue,
  onAbort,
  Patience,
  type Patiently,
  ProducerCommands,
  type QueueCommands,
  renewAfterMs,
  reopenIfClosed,
  SealedError,
} from '@piecework/protocol';
import type { CheckedOptions } from '../create/options.js';
import { confirmDurability } from '../seal/durability.js';
import { type SealOf, type Site, sealRequest, tryOrLeaveToTick } from '../seal/seal-request.js';
import { Appender } from './appender.js';

/** Checks an item before it is added, and throws if it is wrong. `index`: its place among those appended together. */
export type ItemCheck = (item: unknown, index: number) => void | Promise<void>;

/**
 * An open request, as one producer has it: items are added until somebody seals it. While this object is open it
 * renews the producer lease, so that the request is not taken for abandoned.
 */
export class OpenRequest<Payload = unknown> implements AsyncDisposable {
  readonly id: string;
  /** Rises with every redrive, and when the id is used for a new request. */
  readonly generation: number;
  /** Whether it was open before this call. */
  readonly joined: boolean;
  /** Whether all items of its `source` are in and the request is sealed: there is nothing to append. */
  readonly allIn: boolean;
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #commands: ProducerCommands;
  readonly #control: ControlCommands;
  readonly #producer: string;
  readonly #options: CheckedOptions;
  readonly #appender: Appender;
  readonly #check: ItemCheck | undefined;
  readonly #onClose: (request: OpenRequest) => void;
  readonly #stopping = new AbortController();
  /** For calls that add items, which a close ends; and for calls that end the request. */
  readonly #adding: Patience;
  readonly #ending: Patience;
  #renewal: NodeJS.Timeout | undefined;
  /** Appends whose items are still being checked; later ones wait behind them. */
  #checking: Promise<void> | undefined;
  /** Appends that have items waiting for room. */
  readonly #adds = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;
  #sealed = false;
  #confirmed = false;
  #closed = false;
  #left = false;
  /** Whether a renewal found that the request has ended. */
  #ended = false;

  /** @internal */
  constructor(
    connection: Connection,
    queue: QueueCommands,
    parts: {
      id: string;
      generation: number;
      producer: string;
      options: CheckedOptions;
      /** How many of the items of its source are in already. @default 0 */
      known?: number;
      allIn?: boolean;
      joined?: boolean;
      check?: ItemCheck | undefined;
      /** Ends all retries of calls that end the request, as when the connection is about to close. */
      closing: AbortSignal;
    },
    onClose: (request: OpenRequest) => void,
  ) {
    this.#connection = connection;
    this.id = parts.id;
    this.generation = parts.generation;
    this.joined = parts.joined ?? false;
    this.allIn = parts.allIn ?? false;
    this.#queue = queue;
    this.#commands = new ProducerCommands(connection, parts.id);
    this.#control = new ControlCommands(connection, parts.id);
    this.#producer = parts.producer;
    this.#options = parts.options;
    this.#check = parts.check;
    this.#onClose = onClose;
    const { closing } = parts;
    const forMs = parts.options.unavailableMs;
    this.#adding = new Patience(connection, parts.id, { forMs, signals: [this.#stopping.signal] });
    this.#ending = new Patience(connection, parts.id, { forMs, signals: [closing] });
    this.#appender = new Appender({
      queue,
      request: this.#commands,
      generation: parts.generation,
      producer: parts.producer,
      window: parts.options.window,
      patience: this.#adding,
      known: parts.known,
    });
    if (this.allIn) {
      this.#sealed = true;
      this.#closed = true;
      this.#left = true;
      return;
    }
    // A renewal that fails is repeated by the next one; the lease survives two missing ones.
    const renew = () => void this.#renew().catch(() => {});
    // cure: producer lease, renewed by time
    this.#renewal = setInterval(renew, renewAfterMs(parts.options.producerLeaseMs));
  }

  async #renew(): Promise<void> {
    const { verdict } = await this.#commands.renewProducer(this.generation);
    if (verdict === 'ok') return;
    clearInterval(this.#renewal);
    this.#ended = true;
    // A close still has to report items that are not in.
    if (!this.#appender.owes) this.#onClose(this);
  }

  /**
   * Adds items. Resolves when there is room for more. The items are sent after at most 100 ms; `flush`, `seal` and
   * `close` wait until all are in. After an append that failed this handle adds nothing more: items that are in stay
   * in, and another handle can seal the request.
   * @throws PayloadError before any of them is sent, with the `index` of the item among them; others may be
   *   appended after it · SealedError · DroppedError · LostError · ClosedError ·
   *   ServerError, ConnectionError after `unavailableMs`: not added · IndeterminateError: it may be added
   */
  async append(...items: readonly Payload[]): Promise<void> {
    this.#throwIfClosed();
    const { maxPayloadBytes } = this.#options;
    const payloads = items.map((item, i) => encodePayload(item, maxPayloadBytes, i));
    const checks = this.#checksOf(items);
    if (checks.length === 0 && !this.#checking) return this.#add(payloads);
    const earlier = this.#checking;
    // cure: appends keep their order while items are checked
    const adding = Promise.all([earlier, ...checks]).then(() => this.#add(payloads));
    const over = Promise.allSettled([earlier, adding]).then(() => {
      if (this.#checking === over) this.#checking = undefined;
    });
    this.#checking = over;
    await adding;
  }

  /** The checks that answer later. @throws what a check throws at once */
  #checksOf(items: readonly Payload[]): Promise<void>[] {
    const checks: Promise<void>[] = [];
    for (const [index, item] of items.entries()) {
      const checking = this.#check?.(item, index);
      if (!checking) continue;
      // When a later item is refused at once, no caller awaits the checks before it.
      checking.catch(() => {});
      checks.push(checking);
    }
    return checks;
  }

  async #add(payloads: readonly string[]): Promise<void> {
    await this.#addAll(payloads);
    // The request has ended: no close reports this any more, so that this call does.
    if (this.#ended) await this.#appender.flush();
  }

  #addAll(payloads: readonly string[]): Promise<void> | undefined {
    for (const [i, payload] of payloads.entries()) {
      const room = this.#appender.add(payload);
      if (room) return this.#addRest(room, payloads.slice(i + 1));
    }
    return undefined;
  }

  async #addRest(room: Promise<void>, payloads: readonly string[]): Promise<void> {
    const adding = room.then(async () => {
      for (const payload of payloads) await this.#appender.add(payload);
    });
    this.#adds.add(adding);
    await adding.finally(() => this.#adds.delete(adding));
  }

  /** Waits until everything appended so far is in. */
  async #allIn(): Promise<void> {
    await this.#checking;
    await Promise.allSettled(this.#adds);
    await this.#appender.flush();
  }

  /** @internal Adds an encoded item as it is. A returned promise resolves when there is room for more. */
  appendEncoded(payload: string): Promise<void> | undefined {
    this.#throwIfClosed();
    return this.#appender.add(payload);
  }

  /** How many items this producer has appended. */
  get appended(): number {
    return this.#appender.sent;
  }

  /** Waits until everything appended so far is in Redis. */
  async flush(): Promise<void> {
    this.#throwIfClosed();
    await this.#allIn();
  }

  /**
   * Seals the request: no more items can be added. A request without items completes here. May be called again
   * after any error that is `retryable`.
   * @throws SealedError when it was cancelled · DroppedError · ServerError, ConnectionError after
   *   `unavailableMs`: not sealed · IndeterminateError: it may be sealed · DurabilityError: it is ·
   *   LostError: the server lost the request, or some of its items
   */
  async seal(): Promise<void> {
    if (!this.#sealed) {
      this.#throwIfClosed();
      await this.#allIn();
      const sealed = await sealRequest(this.#site, this.#seal);
      if (sealed === 'cancelling') throw new SealedError(this.id, sealed);
      this.#sealed = true;
      this.leave();
    }
    if (this.#confirmed) return;
    await confirmDurability(this.#site, this.#seal, this.#options.durability);
    this.#confirmed = true;
  }

  /**
   * Cancels the request: nothing more of it starts, and running handlers are aborted.
   * @throws ServerError, ConnectionError after `unavailableMs` · IndeterminateError
   */
  async cancel(): Promise<void> {
    const { epoch } = this.#connection;
    const cancelled = await this.#ending.call(() => this.#control.cancel(this.generation));
    const { id, generation } = this;
    const patiently: Patiently = (call) => this.#ending.call(call);
    await tryOrLeaveToTick(async () => {
      if (cancelled.verdict === 'complete') {
        const over = { ...cancelled, generation };
        await finishOnQueue(epoch, this.#queue, this.#commands, over, patiently);
      } else if (cancelled.verdict === 'cancelling') {
        const note = () => this.#queue.scheduleTend(id, generation, 0);
        await reopenIfClosed(this.#queue, this.#commands, generation, note, patiently);
      }
    });
    this.leave();
  }

  get #site(): Site {
    return {
      ...{ connection: this.#connection, queue: this.#queue },
      ...{ request: this.#commands, patience: this.#ending },
    };
  }

  get #seal(): SealOf {
    const { sent } = this.#appender;
    return { generation: this.generation, producer: this.#producer, sent };
  }

  /** @internal Gives up items that are not in yet, as when the caller's signal aborts. */
  abort(reason: unknown): void {
    this.#stopping.abort();
    this.#appender.close(new AbortError(`submission of ${this.id}`, reason));
  }

  /**
   * Takes no more items, waits until those appended so far are in Redis, and leaves the request open for other
   * producers. The handle is closed even if this fails. An error that an append, a flush or a seal has thrown
   * already is not thrown again. May be called twice.
   * @throws as append: items that were appended are not in
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#left) return;
    this.#closed = true;
    try {
      if (!this.#appender.hasThrown) await Promise.race([this.#allIn(), this.#leaving()]);
    } finally {
      this.leave();
    }
  }

  /** Settles when `leave` is called, even if a call does not answer. @throws ClosedError when items are not in */
  #leaving(): Promise<void> {
    return new Promise((resolve, reject) => {
      onAbort(this.#stopping.signal, () => {
        if (this.#appender.missing > 0) reject(this.#closedEarly());
        else resolve();
      });
    });
  }

  #closedEarly(): ClosedError {
    return new ClosedError(`open request ${this.id}`, this.#appender.missing);
  }

  /** Closes the handle at once and gives up items that are not in yet; the request stays open for other producers. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#closed = true;
    this.#appender.close(this.#closedEarly());
    this.#stopping.abort();
    clearInterval(this.#renewal);
    this.#onClose(this);
  }

  #throwIfClosed(): void {
    if (this.#closed) throw new ClosedError(`open request ${this.id}`);
  }

  /** As `close`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
