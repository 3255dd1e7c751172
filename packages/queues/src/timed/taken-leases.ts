import type { TimedOutcome, TimedVerdict } from '@piecework/protocol';
import { LeaseLostError } from './errors.js';
import type { Holding } from './holding.js';

/**
 * Keeps the leases of one consumer, all by one timer: renews each at a third of its time, and tells
 * whoever works at it when, by our own clock, it is about to end.
 */
export class TakenLeases {
  readonly #leaseMs: number;
  /** Undefined: leases are not renewed. */
  readonly #renew: ((outcome: TimedOutcome) => Promise<TimedVerdict>) | undefined;
  readonly #onError: (error: unknown) => void;
  readonly #held = new Set<Holding>();
  #timer: NodeJS.Timeout | undefined;
  #renews = true;

  constructor(
    leaseMs: number,
    renew: ((outcome: TimedOutcome) => Promise<TimedVerdict>) | undefined,
    onError: (error: unknown) => void,
  ) {
    this.#leaseMs = leaseMs;
    this.#renew = renew;
    this.#onError = onError;
  }

  get size(): number {
    return this.#held.size;
  }

  add(holding: Holding): void {
    this.#held.add(holding);
    this.#timer ??= setInterval(() => this.#look(), this.#beatMs);
  }

  delete(holding: Holding): void {
    this.#held.delete(holding);
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** What is held from here on is held to the end of its lease. */
  stopRenewing(): void {
    this.#renews = false;
  }

  /** All of it is lost, for `reason`. */
  end(reason: Error): void {
    for (const holding of [...this.#held]) holding.end(reason);
  }

  get #beatMs(): number {
    return Math.max(5, Math.min(1_000, this.#leaseMs / 10));
  }

  /**
   * Whether it is ours by our own clock now; one whose lease is over, or as good as over, ends. Asked
   * before it is handed out too: a process that froze, or heard the reply late, hands out nothing stale.
   */
  keeps(holding: Holding, now = performance.now()): boolean {
    // What is renewed is stopped before its lease ends, and not behind it.
    const margin = this.#renew ? this.#beatMs : 0;
    if (now + margin >= holding.endsMs) holding.end(new LeaseLostError(holding.taken.key));
    return !holding.isOver;
  }

  #look(): void {
    const now = performance.now();
    for (const holding of [...this.#held]) {
      if (!this.keeps(holding, now)) continue;
      if (this.#renews && !holding.busy && now - holding.renewedMs >= this.#leaseMs / 3)
        void this.#keep(holding, now);
    }
  }

  async #keep(holding: Holding, sentMs: number): Promise<void> {
    if (!this.#renew) return;
    const { token, taken } = holding;
    holding.busy = true;
    try {
      const outcome = { key: taken.key, token, verb: 'keep', value: this.#leaseMs } as const;
      const verdict = await this.#renew(outcome);
      if (verdict === 'lost') {
        holding.end(new LeaseLostError(taken.key));
      } else {
        holding.renewedMs = sentMs;
        holding.endsMs = sentMs + this.#leaseMs;
      }
    } catch (error) {
      // Tried again at the next look; the lease ends if it never succeeds.
      this.#onError(error);
    } finally {
      holding.busy = false;
    }
  }
}
