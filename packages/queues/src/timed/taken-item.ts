import type { TakenKey } from '@piecework/protocol';

/** One item that this process has taken, until it is settled or lost. */
export class TakenItem {
  readonly taken: TakenKey;
  readonly token: string;
  /** End of the lease as of the take, by the server's clock, in ms. */
  readonly lockedUntil: number;
  /** End of the lease by this process's clock; never later than by the server's. */
  endsMs: number;
  /** Last take or renewal, by this process's clock. */
  renewedMs: number;
  /** Whether a call that settles or renews it is under way. */
  busy = false;
  #ended = false;
  readonly #onEnd: (item: TakenItem) => void;
  readonly #controller = new AbortController();

  constructor(
    taken: TakenKey,
    lease: { token: string; lockedUntil: number; sentMs: number; leftMs: number },
    onEnd: (item: TakenItem) => void,
  ) {
    this.taken = taken;
    this.token = lease.token;
    this.lockedUntil = lease.lockedUntil;
    this.renewedMs = lease.sentMs;
    this.endsMs = lease.sentMs + lease.leftMs;
    this.#onEnd = onEnd;
  }

  /** Aborts when it is lost. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** It was settled, or lost for `reason`. */
  end(reason?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd(this);
    if (reason) this.#controller.abort(reason);
  }
}
