import type { Entry } from '@piecework/protocol';

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
  #patienceMs = 0;

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

  /** `patienceMs`: after how long without any start all of them go back. */
  add(entry: Entry, now: number, patienceMs: number): void {
    this.#entries.set(entry.entry, entry);
    this.#movedAt = now;
    this.#patienceMs = patienceMs;
    this.#timer ??= this.#wait(patienceMs);
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
    const leftMs = this.#movedAt + this.#patienceMs - performance.now();
    if (leftMs > 0) {
      this.#timer = this.#wait(leftMs);
      return;
    }
    // cure: what waits behind slow handlers goes back
    this.#onOverdue();
  }
}
