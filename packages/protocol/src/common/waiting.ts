import { isAborted, onAbort } from './abort.js';

/** Longest time of a timer in Node, in ms: 24.8 days. A longer one would fire at once. */
export const LONGEST_TIMER_MS = 2_147_483_647;

/** A timer of any length, for waits of up to a year. */
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

  /** From now on the timer does not keep the process alive. */
  unref(): this {
    this.#timer.unref();
    return this;
  }

  #set(ms: number): NodeJS.Timeout {
    // cure: long timers are set in parts
    if (ms <= LONGEST_TIMER_MS) return setTimeout(this.#act, ms);
    const again = () => {
      const isRef = this.#timer.hasRef();
      this.#timer = this.#set(this.#endMs - performance.now());
      if (!isRef) this.#timer.unref();
    };
    return setTimeout(again, LONGEST_TIMER_MS);
  }
}

/**
 * Calls after `ms`, and after what had arrived by then was read: behind a blocked event loop, Node runs timers first, then
 * reads, then runs immediates.
 */
export const afterReading = (ms: number, then: () => void): NodeJS.Timeout =>
  setTimeout(
    // cure: an answer that has arrived is not late
    () => setImmediate(then),
    ms,
  );

/**
 * Calls `onLate` after `ms`, unless the function that it returns is called before. An event loop that was blocked
 * first reads what has arrived meanwhile: then only the loop itself was late.
 */
export function whenLate(ms: number, onLate: () => void): () => void {
  let came = false;
  const check = () => {
    if (!came) onLate();
  };
  const timer = afterReading(ms, check);
  return () => {
    came = true;
    clearTimeout(timer);
  };
}

/**
 * As `call` ends; when it has not ended after `ms`, as `late` says. For calls that are made all the time: it makes no
 * error before one is needed, because that costs more than everything else here.
 */
export function within<T>(ms: number, call: Promise<T>, late: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = whenLate(Math.min(ms, LONGEST_TIMER_MS), () => {
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    });
    call.then(
      (answer) => {
        ended();
        resolve(answer);
      },
      (error: unknown) => {
        ended();
        reject(error);
      },
    );
  });
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

/** Resolves in the next turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Waits that double from `firstMs` to `maxMs`, each with ±25 % of jitter. */
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
