import { AbortError, ClosedError, TimeoutError, type WaitOptions } from '@piecework/protocol';

/**
 * How long one caller stays: until its signal aborts, its time is over, or it leaves. The promise of
 * `race` settles then, whatever becomes of the work; nothing is left on the signal or in a timer.
 *
 * Thousands of callers may pass the same signal. Each signal gets one listener of ours, because Node
 * warns of a leak at the eleventh and takes linear time to remove one.
 */
const listening = new WeakMap<AbortSignal, Set<() => void>>();

function onAbort(signal: AbortSignal, act: () => void): () => void {
  let acts = listening.get(signal);
  if (!acts) {
    acts = new Set();
    listening.set(signal, acts);
  }
  const all = acts;
  if (all.size === 0) {
    const run = () => {
      for (const one of [...all]) one();
    };
    signal.addEventListener('abort', run, { once: true });
    unlisten.set(all, () => signal.removeEventListener('abort', run));
  }
  all.add(act);
  return () => {
    if (all.delete(act) && all.size === 0) unlisten.get(all)?.();
  };
}

const unlisten = new WeakMap<Set<() => void>, () => void>();

export class Stay implements Disposable {
  /** Aborts when the stay is over, for whatever reason. */
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #ends = new Set<(error: unknown) => void>();
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #stopListening: (() => void)[] = [];
  #error: unknown;

  /**
   * `closing` aborts when the notifier closes: whoever reads through it could go on trying for ever.
   * @throws AbortError when the signal is aborted already
   */
  constructor(what: string, { signal, timeoutMs }: WaitOptions, closing?: AbortSignal) {
    if (signal?.aborted) throw new AbortError(what, signal.reason);
    this.signal = this.#controller.signal;
    if (signal) {
      const abort = () => this.end(new AbortError(what, signal.reason));
      this.#stopListening.push(onAbort(signal, abort));
    }
    if (closing) {
      this.#stopListening.push(onAbort(closing, () => this.end(new ClosedError('notifier'))));
    }
    if (timeoutMs !== undefined) {
      this.#timer = setTimeout(() => this.end(new TimeoutError(what, timeoutMs)), timeoutMs);
    }
  }

  /** Ends the stay: what is raced, now or later, rejects with `error`. */
  end(error: unknown): void {
    if (this.#error) return;
    this.#error = error;
    clearTimeout(this.#timer);
    for (const stop of this.#stopListening.splice(0)) stop();
    for (const end of [...this.#ends]) end(error);
    this.#ends.clear();
    this.#controller.abort();
  }

  /** What `work` resolves to, unless the stay ends first. @throws AbortError · TimeoutError */
  race<T>(work: Promise<T>): Promise<T> {
    // Not Promise.race with one lasting promise: that keeps a reaction for every call.
    return new Promise((resolve, reject) => {
      if (this.#error) {
        work.catch(() => {});
        reject(this.#error);
        return;
      }
      this.#ends.add(reject);
      work.then(resolve, reject).finally(() => this.#ends.delete(reject));
    });
  }

  /** @throws AbortError · TimeoutError when it is over */
  throwIfOver(): void {
    if (this.#error) throw this.#error;
  }

  [Symbol.dispose](): void {
    this.end(new ClosedError('this wait'));
  }
}
