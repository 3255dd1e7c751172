import type { Entry } from '@piecework/protocol';

/** After how long what is read ahead goes back if no handler ends meanwhile, in ms, and in multiples of its pace. */
const LEAST_WAIT_MS = 200;
const WAITS = 4;

/**
 * Sub-requests that this worker owns and has not started: each starts when a handler has ended, without a call. If
 * none ends for much longer than expected, they go back, so that they do not wait here while other workers are idle.
 */
export class ReadAhead {
  readonly #onOverdue: () => void;
  /** By entry, in the order in which they were read. */
  readonly #entries = new Map<string, Entry>();
  #timer: NodeJS.Timeout | undefined;
  /** When something was added or started last, as performance.now(). */
  #movedAt = 0;
  #waitMs = LEAST_WAIT_MS;

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

  /** The one that was read first. */
  take(now: number): Entry | undefined {
    this.#movedAt = now;
    const [first] = this.#entries.values();
    if (first) this.#entries.delete(first.entry);
    return first;
  }

  /** Takes all of them. */
  takeAll(): string[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const entries = [...this.#entries.keys()];
    this.#entries.clear();
    return entries;
  }

  #wait(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#check(), ms).unref();
  }

  #check(): void {
    this.#timer = undefined;
    if (this.#entries.size === 0) return;
    const leftMs = this.#movedAt + this.#waitMs - performance.now();
    if (leftMs > 0) {
      this.#timer = this.#wait(leftMs);
      return;
    }
    // cure: what waits behind slow handlers goes back
    this.#onOverdue();
  }
}
