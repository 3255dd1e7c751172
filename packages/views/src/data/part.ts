/**
 * One thing that is read of Redis, at most once in a time however many pages show it. Whoever asks sooner receives what
 * was read last, and whoever asks while it is read waits for the same answer. Nothing is read unless somebody asks.
 */
export class Part<T> {
  readonly #read: () => Promise<T>;
  readonly #everyMs: number;
  #last: Promise<T> | undefined;
  #begunAt = 0;
  #isRunning = false;

  constructor(everyMs: number, read: () => Promise<T>) {
    this.#everyMs = everyMs;
    this.#read = read;
  }

  get(): Promise<T> {
    const now = performance.now();
    if (this.#last && (this.#isRunning || now - this.#begunAt < this.#everyMs)) return this.#last;
    this.#begunAt = now;
    this.#isRunning = true;
    const reading = this.#read().finally(() => {
      this.#isRunning = false;
    });
    // Whoever asked receives the error; a failure that nobody waits for is no crash.
    reading.catch(() => {});
    this.#last = reading;
    return reading;
  }

  /** The next `get` reads anew: something was changed. */
  forget(): void {
    if (!this.#isRunning) this.#last = undefined;
  }
}

/** Shortest time between two reads of the same thing. Less than a round, so that a round never finds an old answer. */
export const ROUND_MS = 1_000;
export const EACH_ROUND_MS = 900;
