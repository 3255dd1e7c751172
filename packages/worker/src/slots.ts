/**
 * The slots of one worker process: how many sub-requests it may hold at once, over all requests.
 * Pure counting; whoever waits for a free one is told when there is.
 */
export class Slots {
  readonly capacity: number;
  #taken = 0;
  #waiting: (() => void)[] = [];

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get free(): number {
    return Math.max(0, this.capacity - this.#taken);
  }

  /** How many more are taken than there are. */
  get over(): number {
    return Math.max(0, this.#taken - this.capacity);
  }

  /** Takes (or, negative, gives back) `n` slots. Never refused: a zombie may hold one too many. */
  take(n: number): void {
    this.#taken += n;
    if (this.free === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when a slot is free, or when `wake` is called. */
  whenFree(): Promise<void> {
    if (this.free > 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Lets go of everybody who waits, as when the worker closes. */
  wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
