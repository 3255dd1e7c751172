import type { Pace } from './pace.js';

/** Over about how long the speed of all workers is measured, in ms; longer while too little ends. */
const WINDOW_MS = 1_000;
/** By what part of an average handler a sub-request may end here after all others: handlers are not equally long. */
const SLACK = 0.5;

/** A reply of the server. */
interface Point {
  /** As performance.now(). */
  readonly at: number;
  readonly left: number;
}

/**
 * How soon all workers together will have done what is left of a request. Where the handlers of this worker take
 * longer than that, it leaves the last sub-requests to the others: here they would end after all others
 * (docs/decisions/0046-read-ahead.md).
 */
export class Remainder {
  readonly #pace: Pace;
  readonly #permits: () => number;
  /** Between this reply and the last one the speed is measured; `#next` takes its place later. */
  #from: Point | undefined;
  #next: Point | undefined;
  /** The time from one end to the next in the whole fleet, in ms; undefined: not known. */
  #eachMs: number | undefined;
  /** How long a handler takes on average in the whole fleet, in ms. */
  #fleetMs = 0;
  /** When everything has ended, as performance.now(). */
  #endsAt = 0;

  /** `permits`: how many this worker has now. */
  constructor(pace: Pace, permits: () => number) {
    this.#pace = pace;
    this.#permits = permits;
  }

  /** A settle was answered. `granted`: permits of all workers · `left`: how many have not ended; -1: not known. */
  answered({ granted, left }: { readonly granted: number; readonly left: number }): void {
    const now = { at: performance.now(), left };
    // A redrive runs some again.
    if (left < 0 || !this.#from || !this.#next || left > this.#from.left) {
      this.#from = left < 0 ? undefined : now;
      this.#next = this.#from;
      this.#eachMs = undefined;
      return;
    }
    // Handlers that started together end together: what one round of them brings is no speed.
    const ended = this.#from.left - left - granted;
    if (ended > 0) {
      this.#eachMs = (now.at - this.#from.at) / ended;
      if (now.at - this.#next.at >= WINDOW_MS / 2) {
        this.#from = this.#next;
        this.#next = now;
      }
    }
    if (this.#eachMs === undefined) return;
    this.#fleetMs = granted * this.#eachMs;
    this.#endsAt = now.at + left * this.#eachMs;
  }

  /** How many may wait here for a handler to end, so that none of them ends after all others. */
  get ahead(): number {
    const { ownMs, leftMs } = this.#times;
    if (leftMs <= 0) return Number.POSITIVE_INFINITY;
    const spareMs = leftMs + SLACK * this.#fleetMs - ownMs;
    return Math.max(0, Math.floor((spareMs * this.#permits()) / ownMs));
  }

  /**
   * For how long this worker is to start nothing more, in ms; 0: it may. When that has passed, the others should have
   * ended everything. If they have not, it takes part again, so nothing waits for a worker that has died.
   */
  get standsBackMs(): number {
    const { ownMs, leftMs } = this.#times;
    return leftMs > 0 && ownMs > leftMs + SLACK * this.#fleetMs ? leftMs : 0;
  }

  /** How long a handler takes here, and the rest of the request everywhere, in ms; 0: not known, or over by now. */
  get #times() {
    const ownMs = this.#pace.handlersMs(1);
    if (ownMs === undefined || this.#eachMs === undefined) return { ownMs: 0, leftMs: 0 };
    return { ownMs, leftMs: Math.max(0, this.#endsAt - performance.now()) };
  }
}
