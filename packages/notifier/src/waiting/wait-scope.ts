import {
  AbortError,
  ClosedError,
  onAbort,
  TimeoutError,
  type WaitOptions,
  within,
} from '@piecework/protocol';

/** Abort reason of the scope's signal; without a reason, Node makes a DOMException each time. */
const ENDED = 'the wait has ended';

/** How long the read of what is waited for may take, in ms. */
const WHY_MS = 1_000;

/**
 * How long one caller waits: until its signal aborts, its time is up, the notifier closes, or the caller
 * leaves. Promises passed to `race` settle then, whatever becomes of the work behind them, and neither a listener
 * nor a timer is left.
 */
export class WaitScope implements Disposable {
  /** Made when the signal is first asked for: it is expensive, and most scopes never need it. */
  #controller: AbortController | undefined;
  readonly #rejects = new Set<(error: unknown) => void>();
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #stopListening: (() => void)[] = [];
  #ended = false;
  #error: unknown;
  /** Answers why Redis does not answer at the moment, if so: the cause of a TimeoutError. */
  hindered: () => unknown = () => undefined;
  /** Reads what is waited for, in words, once the time is up. */
  why: () => Promise<string | undefined> = async () => undefined;

  /**
   * @param what named in errors, as 'completion of ID'
   * @param closing aborts when the notifier closes, with what is closed as its reason; without it, a reader could retry
   *   for ever
   * @throws AbortError when the signal is aborted already
   */
  constructor(what: string, { signal, timeoutMs }: WaitOptions, closing?: AbortSignal) {
    if (signal?.aborted) throw new AbortError(what, signal.reason);
    if (signal) {
      const abort = () => this.end(new AbortError(what, signal.reason));
      this.#stopListening.push(onAbort(signal, abort));
    }
    if (closing) {
      this.#stopListening.push(onAbort(closing, () => this.end(new ClosedError(closing.reason))));
    }
    if (timeoutMs !== undefined) {
      this.#timer = setTimeout(() => void this.#timeOut(what, timeoutMs), timeoutMs);
    }
  }

  async #timeOut(what: string, timeoutMs: number): Promise<void> {
    const hindered = this.hindered();
    if (hindered) return this.end(new TimeoutError(what, timeoutMs, hindered));
    const reading = this.why().then(
      (why) => ({ why, cause: undefined }),
      (cause: unknown) => ({ why: undefined, cause }),
    );
    const unknown = () => ({ why: undefined, cause: undefined });
    const { why, cause } = await within(WHY_MS, reading, unknown);
    this.end(new TimeoutError(what, timeoutMs, cause, why));
  }

  /** Aborts when the scope ends, for whatever reason. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#ended) this.#controller.abort(ENDED);
    return this.#controller.signal;
  }

  /** Ends the scope: every `race` under way, and every later one, rejects with `error`. */
  end(error: unknown): void {
    if (this.#ended) return;
    this.#error = error;
    this.#release();
    for (const reject of [...this.#rejects]) reject(error);
    this.#rejects.clear();
  }

  #release(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    for (const stop of this.#stopListening.splice(0)) stop();
    this.#controller?.abort(ENDED);
  }

  /** Why the scope ended. Made on demand: an error is expensive, and callers that just leave never read it. */
  get #reason(): unknown {
    this.#error ??= new ClosedError('this wait');
    return this.#error;
  }

  /** What `work` resolves to, unless the scope ends first. @throws AbortError · TimeoutError · ClosedError */
  race<T>(work: Promise<T>): Promise<T> {
    // Not Promise.race with one lasting promise: that keeps a reaction for every call.
    return new Promise((resolve, reject) => {
      if (this.#ended) {
        work.catch(() => {});
        reject(this.#reason);
        return;
      }
      this.#rejects.add(reject);
      work.then(
        (value) => {
          this.#rejects.delete(reject);
          resolve(value);
        },
        (error: unknown) => {
          this.#rejects.delete(reject);
          reject(error);
        },
      );
    });
  }

  /** @throws AbortError · TimeoutError · ClosedError once the scope has ended */
  throwIfEnded(): void {
    if (this.#ended) throw this.#reason;
  }

  [Symbol.dispose](): void {
    if (this.#ended) return;
    if (this.#rejects.size > 0) this.end(this.#reason);
    else this.#release();
  }
}
