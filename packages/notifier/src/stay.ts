import {
  AbortError,
  ClosedError,
  onAbort,
  TimeoutError,
  type WaitOptions,
} from '@piecework/protocol';

/**
 * How long one caller stays: until its signal aborts, its time is over, or it leaves. The promise of
 * `race` settles then, whatever becomes of the work; nothing is left on the signal or in a timer.
 */

/** Said to whoever aborts with a stay; without a reason, Node makes a DOMException each time. */
const OVER = 'the stay is over';

export class Stay implements Disposable {
  /** Made when somebody asks for its signal: most stays end unasked, and it is dear. */
  #controller: AbortController | undefined;
  readonly #ends = new Set<(error: unknown) => void>();
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #stopListening: (() => void)[] = [];
  #over = false;
  #error: unknown;
  /** Why nothing is known at the moment, for who is told that the time is over. */
  hindered: () => unknown = () => undefined;

  /**
   * `closing` aborts when the notifier closes: whoever reads through it could go on trying for ever.
   * @throws AbortError when the signal is aborted already
   */
  constructor(what: string, { signal, timeoutMs }: WaitOptions, closing?: AbortSignal) {
    if (signal?.aborted) throw new AbortError(what, signal.reason);
    if (signal) {
      const abort = () => this.end(new AbortError(what, signal.reason));
      this.#stopListening.push(onAbort(signal, abort));
    }
    if (closing) {
      this.#stopListening.push(onAbort(closing, () => this.end(new ClosedError('notifier'))));
    }
    if (timeoutMs !== undefined) {
      const late = () => this.end(new TimeoutError(what, timeoutMs, this.hindered()));
      this.#timer = setTimeout(late, timeoutMs);
    }
  }

  /** Aborts when the stay is over, for whatever reason. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#over) this.#controller.abort(OVER);
    return this.#controller.signal;
  }

  /** Ends the stay: what is raced, now or later, rejects with `error`. */
  end(error: unknown): void {
    if (this.#over) return;
    this.#error = error;
    this.#leave();
    for (const end of [...this.#ends]) end(error);
    this.#ends.clear();
  }

  #leave(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    for (const stop of this.#stopListening.splice(0)) stop();
    this.#controller?.abort(OVER);
  }

  /** Why it is over; an error is dear, and of those who just leave nobody asks for it. */
  get #reason(): unknown {
    this.#error ??= new ClosedError('this wait');
    return this.#error;
  }

  /** What `work` resolves to, unless the stay ends first. @throws AbortError · TimeoutError */
  race<T>(work: Promise<T>): Promise<T> {
    // Not Promise.race with one lasting promise: that keeps a reaction for every call.
    return new Promise((resolve, reject) => {
      if (this.#over) {
        work.catch(() => {});
        reject(this.#reason);
        return;
      }
      this.#ends.add(reject);
      work.then(
        (value) => {
          this.#ends.delete(reject);
          resolve(value);
        },
        (error: unknown) => {
          this.#ends.delete(reject);
          reject(error);
        },
      );
    });
  }

  /** @throws AbortError · TimeoutError when it is over */
  throwIfOver(): void {
    if (this.#over) throw this.#reason;
  }

  [Symbol.dispose](): void {
    if (this.#over) return;
    if (this.#ends.size > 0) this.end(this.#reason);
    else this.#leave();
  }
}
