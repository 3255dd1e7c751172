import type { TakenKey } from '@piecework/protocol';

/** One key that this process has taken, for as long as it is its own. */
export class Holding {
  readonly taken: TakenKey;
  readonly token: string;
  /** When the lease is over, as the server said it at the take, in ms. */
  readonly lockedUntil: number;
  /** The same by our own clock, and never later. */
  endsMs: number;
  /** When it was taken or renewed last, by our own clock. */
  renewedMs: number;
  /** A call that settles or renews it is under way. */
  busy = false;
  #over = false;
  readonly #onOver: (holding: Holding) => void;
  readonly #controller = new AbortController();

  constructor(
    taken: TakenKey,
    lease: { token: string; lockedUntil: number; sentMs: number; leftMs: number },
    onOver: (holding: Holding) => void,
  ) {
    this.taken = taken;
    this.token = lease.token;
    this.lockedUntil = lease.lockedUntil;
    this.renewedMs = lease.sentMs;
    this.endsMs = lease.sentMs + lease.leftMs;
    this.#onOver = onOver;
  }

  /** Aborts when it is lost. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** It is not ours any more: settled, or lost for `reason`. */
  end(reason?: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#onOver(this);
    if (reason) this.#controller.abort(reason);
  }
}
