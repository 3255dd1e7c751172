import {
  AbortError,
  ClosedError,
  type Connection,
  encodePayload,
  onAbort,
  Patience,
  type Patiently,
  type QueueCommands,
  RequestCommands,
  SealedError,
  tellOpen,
  tellOver,
} from '@piecework/protocol';
import { Appender } from './appender.js';
import { confirmDurability } from './durability.js';
import type { CheckedOptions } from './options.js';
import { type SealOf, type Site, sealIn, tellEnd } from './seal-in.js';

/** Throws what is wrong with an item, of which `index` says its place among those appended together. */
export type ItemCheck = (item: unknown, index: number) => void | Promise<void>;

/**
 * An open request, as one producer sees it: items are added until somebody seals it. While this
 * object is open it renews the producer lease, so that the request is not taken for orphaned.
 */
export class OpenRequest<Payload = unknown> implements AsyncDisposable {
  readonly id: string;
  readonly generation: number;
  /** Whether somebody else had opened it. */
  readonly joined: boolean;
  /** Whether it was sealed before, with all items of its `source`: there is nothing to append. */
  readonly allIn: boolean;
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #commands: RequestCommands;
  readonly #producer: string;
  readonly #options: CheckedOptions;
  readonly #appender: Appender;
  readonly #check: ItemCheck | undefined;
  readonly #onClose: (request: OpenRequest) => void;
  readonly #stopping = new AbortController();
  /** For what adds, which a close ends, and for what ends the request. */
  readonly #adding: Patience;
  readonly #ending: Patience;
  #renewal: NodeJS.Timeout | undefined;
  /** Appends whose items are still being checked; those that come later wait behind them. */
  #checking: Promise<void> | undefined;
  /** Appends of which some items wait for room. */
  readonly #adds = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;
  #sealed = false;
  #confirmed = false;
  #closed = false;
  #left = false;
  /** Whether it has ended elsewhere, as a renewal was told. */
  #ended = false;

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
      /** How many of the items of its source are in already. @default 0 */
      known?: number;
      allIn?: boolean;
      joined?: boolean;
      check?: ItemCheck | undefined;
      /** Ends every trying again to end it, as when the connection is about to close. */
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
    this.#commands = new RequestCommands(connection, parts.id);
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
      firstNumber: parts.firstNumber,
      known: parts.known,
    });
    if (this.allIn) {
      this.#sealed = true;
      this.#closed = true;
      this.#left = true;
      return;
    }
    // A renewal that fails is tried again at the next; the lease bears two that are missing.
    const renew = () => void this.#renew().catch(() => {});
    this.#renewal = setInterval(renew, parts.options.producerLeaseMs / 3);
  }

  async #renew(): Promise<void> {
    const { verdict } = await this.#commands.keepOpen(this.generation);
    if (verdict === 'ok') return;
    clearInterval(this.#renewal);
    this.#ended = true;
    // What it still owes, a close tells.
    if (!this.#appender.owes) this.#onClose(this);
  }

  /**
   * Adds items. Resolves when there is room for more; they are sent 100 ms later at the latest, and `flush`,
   * `seal` and `close` wait until all are in.
   * One that failed has ended the adding of this handle: what is in, is in, and can be sealed by others.
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
    const adding = Promise.all([earlier, ...checks]).then(() => this.#add(payloads));
    const over = Promise.allSettled([earlier, adding]).then(() => {
      if (this.#checking === over) this.#checking = undefined;
    });
    this.#checking = over;
    await adding;
  }

  /** The checks that take their time. @throws what one says at once */
  #checksOf(items: readonly Payload[]): Promise<void>[] {
    const checks: Promise<void>[] = [];
    for (const [index, item] of items.entries()) {
      const checking = this.#check?.(item, index);
      if (!checking) continue;
      // One that is refused at once ends the waiting for those before it.
      checking.catch(() => {});
      checks.push(checking);
    }
    return checks;
  }

  async #add(payloads: readonly string[]): Promise<void> {
    await this.#addAll(payloads);
    // No close waits for it any more: it is told at once.
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

  /** Everything that was appended until now is handed over and in. */
  async #allIn(): Promise<void> {
    await this.#checking;
    await Promise.allSettled(this.#adds);
    await this.#appender.flush();
  }

  /** Adds an item that is already encoded, as it is; a promise, if there is one, resolves when there is room. */
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
    await this.#allIn();
  }

  /**
   * No more items will be added, by anybody. With none at all the request completes here. May be
   * asked again after any error that is `retryable`.
   * @throws SealedError when it was cancelled · DroppedError · ServerError, ConnectionError after
   *   `unavailableMs`: not sealed · IndeterminateError: it may be sealed · DurabilityError: it is ·
   *   LostError: the server lost the request, or some of its items
   */
  async seal(): Promise<void> {
    if (!this.#sealed) {
      this.#throwIfClosed();
      await this.#allIn();
      const sealed = await sealIn(this.#site, this.#seal);
      if (sealed === 'cancelling') throw new SealedError(this.id, sealed);
      this.#sealed = true;
      this.leave();
    }
    if (this.#confirmed) return;
    await confirmDurability(this.#site, this.#seal, this.#options.durability);
    this.#confirmed = true;
  }

  /**
   * Cancels the request: nothing that does not run yet will.
   * @throws ServerError, ConnectionError after `unavailableMs` · IndeterminateError
   */
  async cancel(): Promise<void> {
    const { epoch } = this.#connection;
    const cancelled = await this.#ending.call(() => this.#commands.cancel(this.generation));
    const { id, generation } = this;
    const patiently: Patiently = (call) => this.#ending.call(call);
    await tellEnd(async () => {
      if (cancelled.verdict === 'complete') {
        const over = { ...cancelled, generation };
        await tellOver(epoch, this.#queue, this.#commands, over, patiently);
      } else if (cancelled.verdict === 'cancelling') {
        const note = () => this.#queue.note(id, generation, 0);
        await tellOpen(this.#queue, this.#commands, generation, note, patiently);
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

  /** Gives up what is not in yet, as when the caller's signal aborts. */
  abort(reason: unknown): void {
    this.#stopping.abort();
    this.#appender.stop(new AbortError(`submission of ${this.id}`, reason));
  }

  /**
   * Takes no more items, waits until those appended so far are in Redis, and leaves the request open for
   * other producers. It is closed also when this fails. What an append, a flush or a seal has thrown already is not
   * thrown again.
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
      if (!this.#appender.told) await Promise.race([this.#allIn(), this.#leaving()]);
    } finally {
      this.leave();
    }
  }

  /** Settles when it is left, whatever does not answer. @throws ClosedError when something is not in by then */
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

  /** Closes it at once and gives up what is not in yet; the request stays as it is, open for other producers. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#closed = true;
    this.#appender.stop(this.#closedEarly());
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
