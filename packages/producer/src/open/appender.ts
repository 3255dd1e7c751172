import {
  type AbortError,
  backoff,
  type ClosedError,
  LostError,
  type Minted,
  type Patience,
  type Patiently,
  type ProducerCommands,
  pause,
  type QueueCommands,
  reopenIfClosed,
  SealedError,
} from '@piecework/protocol';
import pLimit from 'p-limit';
import { CHUNK_BYTES, CHUNK_ITEMS } from '../items/chunk-size.js';
import { whyGone } from '../seal/seal-request.js';

/** Chunks in flight at once. */
const IN_FLIGHT = 4;
/** Longest time that an item waits to be sent together with others, in ms. */
const GATHER_MS = 100;
/** Longest wait, in ms, between two reads of whether the window has room. */
const LONGEST_WAIT_MS = 250;

/**
 * Appends encoded items to one open request, a bounded number of chunks in flight.
 *
 * The producer numbers its items from 0. A chunk names the number of its first item, so that a chunk that is
 * sent twice adds nothing twice. A chunk that overtakes its predecessor is answered 'gap' and waits for it. A
 * chunk that finds the window full polls for room, without its items. A chunk that is not full after GATHER_MS
 * is sent as it is. After a chunk failed, or after `stop`, nothing more is sent.
 */
export class Appender {
  readonly #queue: QueueCommands;
  readonly #request: ProducerCommands;
  readonly #generation: number;
  readonly #producer: string;
  readonly #window: number;
  readonly #patience: Patience;
  readonly #chunkItems: number;
  readonly #limit = pLimit(IN_FLIGHT);
  readonly #inFlight = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #previous: Promise<void> = Promise.resolve();
  #pending: string[] = [];
  #pendingBytes = 0;
  /** When the first pending item was added; at most one timer checks whether that is long ago. */
  #pendingSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #sent = 0;
  /** How many of the next items are in Redis already. */
  #known: number;
  /** How many items are being sent and are not in yet. */
  #onTheWay = 0;
  #failure: { readonly error: unknown } | undefined;
  #hasThrown = false;

  constructor(parts: {
    queue: QueueCommands;
    request: ProducerCommands;
    generation: number;
    producer: string;
    window: number;
    patience: Patience;
    /** How many of its items are in already, by an earlier producer of this name. @default 0 */
    known?: number | undefined;
  }) {
    this.#queue = parts.queue;
    this.#request = parts.request;
    this.#generation = parts.generation;
    this.#producer = parts.producer;
    this.#window = parts.window;
    this.#patience = parts.patience;
    this.#known = parts.known ?? 0;
    // Several chunks have to fit into the window, or it would run empty before the next one arrives.
    this.#chunkItems =
      parts.window > 0
        ? Math.max(1, Math.min(CHUNK_ITEMS, Math.floor(parts.window / 4)))
        : CHUNK_ITEMS;
  }

  /** How many items were handed over for sending. */
  get sent(): number {
    return this.#sent;
  }

  /** How many items were added and are not in Redis. */
  get missing(): number {
    return this.#pending.length + this.#onTheWay;
  }

  /** Whether the failure, if there is one, was thrown to the caller. */
  get hasThrown(): boolean {
    return this.#hasThrown;
  }

  /** Whether items are still to be sent, or a failure is still to be thrown. */
  get owes(): boolean {
    return !this.#hasThrown && (this.#failure !== undefined || this.missing > 0);
  }

  /** Adds one encoded item. A returned promise resolves when there is room for the next; undefined: there is. */
  add(payload: string): Promise<void> | undefined {
    this.#throwIfFailed();
    if (this.#known > 0) {
      this.#known -= 1;
      this.#sent += 1;
      return undefined;
    }
    if (this.#pending.length === 0) {
      this.#pendingSince = performance.now();
      this.#timer ??= setTimeout(this.#sendOld, GATHER_MS);
    }
    this.#pending.push(payload);
    this.#pendingBytes += payload.length;
    const full = this.#pending.length >= this.#chunkItems || this.#pendingBytes >= CHUNK_BYTES;
    return full ? this.#sendPending() : undefined;
  }

  /** Sends the pending items and waits until all are in. */
  async flush(): Promise<void> {
    await this.#sendPending();
    await Promise.all(this.#inFlight);
    this.#throwIfFailed();
  }

  /** Gives up items that are not in yet; pending calls reject with `error`. */
  close(error: AbortError | ClosedError): void {
    this.#failure ??= { error };
    this.#stopping.abort();
    clearTimeout(this.#timer);
  }

  /** Sends a chunk that is not full; while there is no room, it keeps filling. */
  readonly #sendOld = (): void => {
    this.#timer = undefined;
    if (this.#pending.length === 0 || this.#failure) return;
    const leftMs = this.#pendingSince + GATHER_MS - performance.now();
    const full = this.#inFlight.size >= IN_FLIGHT;
    // A timer may be early by a part of a millisecond.
    if (leftMs < 1 && !full) this.#handOver();
    else this.#timer = setTimeout(this.#sendOld, full ? GATHER_MS : leftMs);
  };

  async #sendPending(): Promise<void> {
    this.#throwIfFailed();
    this.#handOver();
    if (this.#inFlight.size >= IN_FLIGHT) await Promise.race(this.#inFlight);
    this.#throwIfFailed();
  }

  #handOver(): void {
    if (this.#pending.length === 0) return;
    const payloads = this.#pending;
    const first = this.#sent;
    const previous = this.#previous;
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#sent += payloads.length;
    this.#onTheWay += payloads.length;
    const sending = this.#limit(() => this.#send(first, payloads, previous))
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => this.#inFlight.delete(sending));
    this.#previous = sending;
    this.#inFlight.add(sending);
  }

  async #send(first: number, payloads: string[], previous: Promise<void>): Promise<void> {
    const { id } = this.#request.keys;
    let waited = false;
    while (!this.#failure) {
      const appended = await this.#patience.call(() =>
        this.#request.append(this.#generation, this.#producer, first, payloads),
      );
      if (appended.verdict === 'ok') {
        this.#onTheWay -= payloads.length;
        if (appended.mint > 0) {
          const minted = { id, generation: this.#generation, ...appended };
          await this.#push(minted);
        }
        return;
      }
      if (appended.verdict === 'full') {
        await this.#room(payloads.length);
      } else if (appended.verdict === 'gap') {
        // With its predecessor in, a gap means that Redis lost acknowledged items.
        if (waited) throw new LostError(id, true);
        await previous;
        waited = true;
      } else if (appended.verdict === 'gone') {
        const site = { request: this.#request, patience: this.#patience };
        throw await whyGone(site, this.#generation, this.#producer);
      } else {
        throw new SealedError(id, appended.verdict);
      }
    }
  }

  async #push(minted: Minted): Promise<void> {
    const push = () => this.#queue.push(minted);
    const patiently: Patiently = (call) => this.#patience.call(call);
    await reopenIfClosed(this.#queue, this.#request, this.#generation, push, patiently);
  }

  /** Resolves when the window seems to have room for `count`, or the request is no longer open. */
  async #room(count: number): Promise<void> {
    const waits = backoff(1, LONGEST_WAIT_MS);
    while (!this.#failure) {
      await pause(waits.next(), this.#stopping.signal);
      if (this.#failure) return;
      const open = await this.#patience.call(() => this.#request.renewProducer(this.#generation));
      if (open.verdict !== 'ok') return;
      if (open.unsettled === 0 || open.unsettled + count <= this.#window) return;
    }
  }

  #throwIfFailed(): void {
    if (!this.#failure) return;
    this.#hasThrown = true;
    throw this.#failure.error;
  }
}
