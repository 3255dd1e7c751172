/** How long the server of a queue may be without an answer until it is asked; after twice that it is silent. In ms. */
const ASK_MS = 2_500;
/** A big fleet asks less often, as it ticks less often: for each worker, in ms. */
const ASK_PER_WORKER_MS = 2.5;
/** How often this is checked, in ms. */
const CHECK_MS = 1_000;

/**
 * Whether the server of a queue answers. Every answered call shows that it does; while there are no calls, for
 * example because all slots are occupied, it is asked. It is silent when it has answered nothing for twice the pace,
 * and was asked at least half a pace ago: an event loop that a handler blocked has asked nothing.
 */
export class Pulse {
  readonly #ask: () => Promise<unknown>;
  /** When another call to the same server was answered last. */
  readonly #elsewhere: () => number;
  #answeredAt = performance.now();
  /** When it was first asked after that; undefined: not yet. */
  #askedAt: number | undefined;
  #asking = false;
  #silent = false;
  #timer: NodeJS.Timeout | undefined;
  /** By how much it asks less often now. */
  readonly #slower: () => number;
  /** How many workers there are. */
  fleet = 1;

  constructor(ask: () => Promise<unknown>, elsewhere: () => number, slower: () => number) {
    this.#ask = ask;
    this.#elsewhere = elsewhere;
    this.#slower = slower;
  }

  start(): void {
    this.answered();
    // After what has arrived by then is read: a busy event loop reads answers late.
    this.#timer ??= setInterval(() => setImmediate(() => this.#check()), CHECK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  answered(): void {
    this.#answeredAt = performance.now();
    this.#silent = false;
  }

  /** For how long the server has been silent, in ms; 0: it is not. */
  get silentMs(): number {
    return this.#silent && this.#sinceMs() >= 2 * this.#paceMs ? this.#sinceMs() : 0;
  }

  get #paceMs(): number {
    return Math.max(ASK_MS * this.#slower(), this.fleet * ASK_PER_WORKER_MS);
  }

  #sinceMs(): number {
    return performance.now() - Math.max(this.#answeredAt, this.#elsewhere());
  }

  #check(): void {
    if (!this.#timer) return;
    const sinceMs = this.#sinceMs();
    if (sinceMs < this.#paceMs) {
      this.#askedAt = undefined;
      this.#silent = false;
      return;
    }
    this.#askedAt ??= performance.now();
    this.#silent =
      sinceMs >= 2 * this.#paceMs && performance.now() - this.#askedAt >= this.#paceMs / 2;
    if (this.#asking) return;
    this.#asking = true;
    this.#ask()
      .then(() => this.answered())
      // The next check asks again.
      .catch(() => {})
      .finally(() => {
        this.#asking = false;
      });
  }
}
