/** After so long without an answer the server of a queue is asked for one, and after twice that it is silent, in ms. */
const ASK_MS = 2_500;
/** A big fleet asks more seldom, as it ticks: for each worker of it, in ms. */
const ASK_PER_WORKER_MS = 2.5;
/** How often that is looked at, in ms. */
const LOOK_MS = 1_000;

/**
 * Whether the server of a queue answers. Any call that it answers says so; while there is none, as with all
 * slots taken, it is asked. It is silent when nothing was answered for twice the pace, of which something was
 * asked for half that: an event loop that a handler held up has asked for nothing.
 */
export class Pulse {
  readonly #ask: () => Promise<unknown>;
  /** When something was answered that may have come by another way too. */
  readonly #elsewhere: () => number;
  #answeredAt = performance.now();
  /** When it was first asked since; undefined: not yet. */
  #askedAt: number | undefined;
  #asking = false;
  #silent = false;
  #timer: NodeJS.Timeout | undefined;
  /** How many workers there are. */
  fleet = 1;

  constructor(ask: () => Promise<unknown>, elsewhere: () => number) {
    this.#ask = ask;
    this.#elsewhere = elsewhere;
  }

  start(): void {
    this.answered();
    // Behind what has arrived by then: a busy event loop reads answers late.
    this.#timer ??= setInterval(() => setImmediate(() => this.#look()), LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  answered(): void {
    this.#answeredAt = performance.now();
    this.#silent = false;
  }

  /** For how long nothing was answered, in ms; 0: the server is not silent. */
  get silentMs(): number {
    return this.#silent && this.#sinceMs() >= 2 * this.#paceMs ? this.#sinceMs() : 0;
  }

  get #paceMs(): number {
    return Math.max(ASK_MS, this.fleet * ASK_PER_WORKER_MS);
  }

  #sinceMs(): number {
    return performance.now() - Math.max(this.#answeredAt, this.#elsewhere());
  }

  #look(): void {
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
      // Asked again at the next look.
      .catch(() => {})
      .finally(() => {
        this.#asking = false;
      });
  }
}
