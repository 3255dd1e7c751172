import {
  leaseCheckMs,
  renewAfterMs,
  type TimedOutcome,
  type TimedVerdict,
} from '@piecework/protocol';
import { LeaseLostError } from './errors.js';
import type { TakenItem } from './taken-item.js';

/**
 * Keeps the leases of one consumer, with one timer. It renews each lease when a third of its time has passed, and
 * aborts the signal of an item when its lease, by this process's clock, is about to end.
 */
export class TakenLeases {
  readonly #leaseMs: number;
  /** Undefined when leases are not renewed. */
  readonly #renew: ((outcome: TimedOutcome) => Promise<TimedVerdict>) | undefined;
  readonly #onError: (error: unknown) => void;
  readonly #items = new Set<TakenItem>();
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
    return this.#items.size;
  }

  add(item: TakenItem): void {
    this.#items.add(item);
    // After what has arrived by then is read: the answer to a renewal may be among it.
    this.#timer ??= setInterval(() => setImmediate(() => this.#checkAll()), this.#beatMs);
  }

  delete(item: TakenItem): void {
    this.#items.delete(item);
    if (this.#items.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** From now on, each lease runs to its end. */
  stopRenewing(): void {
    this.#renews = false;
  }

  /** Ends every item as lost, for `reason`. */
  loseAll(reason: Error): void {
    for (const item of [...this.#items]) item.end(reason);
  }

  get #beatMs(): number {
    return Math.max(5, leaseCheckMs(this.#leaseMs));
  }

  /**
   * Whether the lease still runs by this process's clock; ends the item if not, or if the lease is about to end. Called
   * also before an item is handed out: a process that froze, or got the reply late, must not hand out a stale one.
   */
  keeps(item: TakenItem, now = performance.now()): boolean {
    // The handler of a renewed item is stopped before the lease ends, not after it.
    const margin = this.#renew ? this.#beatMs : 0;
    if (now + margin >= item.endsMs) item.end(new LeaseLostError(item.taken.key));
    return !item.isEnded;
  }

  #checkAll(): void {
    const now = performance.now();
    for (const item of [...this.#items]) {
      if (!this.keeps(item, now)) continue;
      if (this.#renews && !item.busy && now - item.renewedMs >= renewAfterMs(this.#leaseMs))
        void this.#keep(item, now);
    }
  }

  async #keep(item: TakenItem, sentMs: number): Promise<void> {
    if (!this.#renew) return;
    const { token, taken } = item;
    item.busy = true;
    try {
      const outcome = { key: taken.key, token, verb: 'keep', value: this.#leaseMs } as const;
      const verdict = await this.#renew(outcome);
      if (verdict === 'lost') {
        item.end(new LeaseLostError(taken.key));
      } else {
        item.renewedMs = sentMs;
        item.endsMs = sentMs + this.#leaseMs;
      }
    } catch (error) {
      // Repeated at the next check; if no renewal succeeds, the lease ends.
      this.#onError(error);
    } finally {
      item.busy = false;
    }
  }
}
