import { isAborted, onAbort } from './abort.js';

/** Longest time of a timer in Node, in ms: 24.8 days. A longer one would fire at once. */
export const LONGEST_TIMER_MS = 2_147_483_647;

/** A timer of any length, as one may wait for a year. */
export class LongTimer {
  readonly #act: () => void;
  readonly #endMs: number;
  #timer: NodeJS.Timeout;

  /** Calls `act` after `ms`. */
  constructor(ms: number, act: () => void) {
    this.#act = act;
    this.#endMs = performance.now() + ms;
    this.#timer = this.#set(ms);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }

  /** Keeps no process alive. */
  unref(): this {
    this.#timer.unref();
    return this;
  }

  #set(ms: number): NodeJS.Timeout {
    if (ms <= LONGEST_TIMER_MS) return setTimeout(this.#act, ms);
    const again = () => {
      const isRef = this.#timer.hasRef();
      this.#timer = this.#set(this.#endMs - performance.now());
      if (!isRef) this.#timer.unref();
    };
    return setTimeout(again, LONGEST_TIMER_MS);
  }
}

/** Resolves after `ms`, or at once (without an error) when one of `signals` aborts. */
export function pause(ms: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  if (isAborted(signals)) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      timer.clear();
      for (const stop of stops) stop();
      resolve();
    };
    const timer = new LongTimer(ms, done);
    const stops = signals.map((signal) => (signal ? onAbort(signal, done) : () => {}));
  });
}

/** A wait that doubles from `firstMs` to `maxMs`, each time with ±25 % of jitter. */
export function backoff(firstMs: number, maxMs: number): { next: () => number; reset: () => void } {
  let ms = firstMs;
  return {
    next: () => {
      const now = ms;
      ms = Math.min(maxMs, ms * 2);
      return now * (0.75 + Math.random() / 2);
    },
    reset: () => {
      ms = firstMs;
    },
  };
}
