import type { Entry } from '@piecework/protocol';

/** After how long what is read ahead goes back if none of it starts meanwhile, in ms, and in multiples of its pace. */
const LEAST_WAIT_MS = 200;
const WAITS = 4;
/** After how long what is to run at once goes back, in ms, whether or not some of it starts meanwhile. */
const AT_ONCE_MS = 20;

/**
 * Sub-requests that this worker owns and has not started: each starts when a handler has ended, without a call. If
 * none starts for much longer than expected, they go back, so that they do not wait here while other workers are idle.
 */
export class ReadAhead {
  readonly #onOverdue: () => void;
  /** By entry, in the order in which they were read. */
  readonly #entries = new Map<string, Entry>();
  #timer: NodeJS.Timeout | undefined;
  /** When something was added or started last, as performance.now(). */
  #movedAt = 0;
  #waitMs = LEAST_WAIT_MS;
  /** When all of it goes back, as performance.now(). */
  #until = Number.POSITIVE_INFINITY;

  constructor(onOverdue: () => void) {
    this.#onOverdue = onOverdue;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(entry: string): boolean {
    return this.#entries.has(entry);
  }

  entries(): MapIterator<string> {
    return this.#entries.keys();
  }

  /** `expectedMs`: for how long it is expected to wait. */
  add(entry: Entry, now: number, expectedMs: number): void {
    this.#entries.set(entry.entry, entry);
    this.#movedAt = now;
    this.#waitMs = Math.max(LEAST_WAIT_MS, WAITS * expectedMs);
    this.#timer ??= this.#wait(this.#waitMs);
  }

  /** What is here is to run at once, as its handlers were taken for short: others wait for it no longer than that. */
  expire(now: number): void {
    if (this.#entries.size === 0) return;
    this.#until = now + AT_ONCE_MS;
    clearTimeout(this.#timer);
    this.#timer = this.#wait(AT_ONCE_MS);
  }

  /** Whether what is here should have run, by `now`. */
  isExpired(now: number): boolean {
    return now >= this.#until;
  }

  /** The one that was read first. */
  take(now: number): Entry | undefined {
    this.#movedAt = now;
    const [first] = this.#entries.values();
    if (first) this.#entries.delete(first.entry);
    if (this.#entries.size === 0) this.#until = Number.POSITIVE_INFINITY;
    return first;
  }

  /** Takes all of them. */
  takeAll(): string[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const entries = [...this.#entries.keys()];
    this.#entries.clear();
    this.#until = Number.POSITIVE_INFINITY;
    return entries;
  }

  #wait(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#check(), ms).unref();
  }

  #check(): void {
    this.#timer = undefined;
    if (this.#entries.size === 0) return;
    const leftMs = Math.min(this.#movedAt + this.#waitMs, this.#until) - performance.now();
    if (leftMs > 0) {
      this.#timer = this.#wait(leftMs);
      return;
    }
    // cure: what waits behind slow handlers goes back
    this.#onOverdue();
  }
}
