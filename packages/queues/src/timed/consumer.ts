import {
  backoff,
  isAborted,
  onAbort,
  PieceworkError,
  pause,
  type TimedOutcome,
  type TimedVerdict,
} from '@piecework/protocol';
import { TakenItem } from './taken-item.js';
import { TakenLeases } from './taken-leases.js';
import { restMs, type Taker, type Took } from './taker.js';
import type { Wakes } from './wakes.js';

/** One call takes at most this many keys. */
const MOST = 1_000;

export interface ConsumerParts {
  readonly taker: Taker;
  readonly wakes: Wakes;
  readonly settle: (outcome: TimedOutcome) => Promise<TimedVerdict>;
  /** At most this many unsettled items at once. */
  readonly demand: number;
  readonly leaseMs: number;
  /** Whether leases are renewed while the consumer is open. */
  readonly renews: boolean;
  /** Polls at this interval, in ms, instead of being woken. */
  readonly pollMs: number | undefined;
  /** Each of them ends the stream. */
  readonly signals: readonly AbortSignal[];
  readonly onError: (error: unknown) => void;
}

/**
 * One stream of due items. It takes as many as the demand allows, hands them out one by one, and waits when nothing is
 * due or the demand is used up. An item counts against the demand from the take until it is settled or lost, handed
 * out or not. While Redis is unavailable, it repeats its call with backoff.
 */
export class Consumer {
  readonly #parts: ConsumerParts;
  readonly #leases: TakenLeases;
  readonly #ready: TakenItem[] = [];
  readonly #backoff = backoff(50, 5_000);
  #taking: Promise<unknown> = Promise.resolve();
  #closed = false;
  #onRoom = () => {};
  /** Nothing is due until `untilMs`, by this process's clock, unless a notice has changed the mark. */
  #rest: { readonly mark: number; readonly untilMs: number } | undefined;

  constructor(parts: ConsumerParts) {
    this.#parts = parts;
    const { leaseMs, renews, settle, onError } = parts;
    this.#leases = new TakenLeases(leaseMs, renews ? settle : undefined, onError);
  }

  /** Whether it is closed, and every item that it took is settled or lost. */
  get isEnded(): boolean {
    return this.#closed && this.unsettled === 0;
  }

  /** Number of items that were taken and are neither settled nor lost. */
  get unsettled(): number {
    return this.#leases.size;
  }

  /**
   * Waits for the next item; undefined when the consumer is closed.
   * @throws ConditionError, and every error that is not retryable
   */
  async next(): Promise<TakenItem | undefined> {
    const { wakes, pollMs, demand } = this.#parts;
    while (!this.#ending) {
      const ready = this.#ready.shift();
      // cure: the own clock is read before an item is handed out
      if (ready && this.#leases.keeps(ready)) return ready;
      if (ready) continue;
      if (this.unsettled >= demand) {
        await this.#room();
        continue;
      }
      await this.#untilDue();
      if (this.#ending) break;
      const { mark } = wakes;
      const count = Math.min(MOST, demand - this.unsettled);
      const took = await this.#take(count);
      // Fewer than requested: everything that was due has been taken.
      if (took && took.taken.length < count)
        this.#rest = { mark, untilMs: performance.now() + (pollMs ?? restMs(took)) };
    }
    return undefined;
  }

  /**
   * Ends the stream and gives back the items that were not handed out. The leases of those that were are renewed until
   * they are settled, if `keepsRenewing`; otherwise they end.
   */
  async close({ keepsRenewing }: { keepsRenewing: boolean }): Promise<void> {
    this.#closed = true;
    this.#onRoom();
    if (!keepsRenewing) this.#leases.stopRenewing();
    await this.#taking;
    const back = this.#ready.splice(0).map(async (item) => {
      const { taken, token } = item;
      item.end();
      await this.#parts.settle({ key: taken.key, token, verb: 'back', value: '' });
    });
    // An item that could not be given back becomes due again when its lease ends.
    await Promise.allSettled(back);
  }

  /** Ends every unsettled item as lost, for `reason`: nothing renews its lease any more. */
  abandon(reason: Error): void {
    this.#leases.loseAll(reason);
  }

  get #ending(): boolean {
    return this.#closed || isAborted(this.#parts.signals);
  }

  async #untilDue(): Promise<void> {
    const { wakes, signals, pollMs } = this.#parts;
    const rest = this.#rest;
    this.#rest = undefined;
    const ms = rest ? rest.untilMs - performance.now() : 0;
    if (!rest || ms <= 0) return;
    await wakes.wait({ mark: rest.mark, ms, signals, woken: pollMs === undefined });
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#onRoom = () => {};
        for (const stop of stops) stop();
        resolve();
      };
      this.#onRoom = done;
      const stops = this.#parts.signals.map((signal) => onAbort(signal, done));
    });
  }

  async #take(count: number): Promise<Took | undefined> {
    const { taker, leaseMs, signals, onError } = this.#parts;
    const taking = taker.take(count, leaseMs).then((took) => {
      this.#add(took);
      return took;
    });
    this.#taking = taking.catch(() => {});
    try {
      const took = await taking;
      this.#backoff.reset();
      return took;
    } catch (error) {
      if (!(error instanceof PieceworkError) || !error.retryable) throw error;
      onError(error);
      await pause(this.#backoff.next(), ...signals);
      return undefined;
    }
  }

  #add({ taken, token, now, ends, sentMs }: Took): void {
    const onEnd = (item: TakenItem) => {
      this.#leases.delete(item);
      this.#onRoom();
    };
    const lease = { token, lockedUntil: ends, sentMs, leftMs: ends - now };
    for (const one of taken) {
      const item = new TakenItem(one, lease, onEnd);
      this.#leases.add(item);
      this.#ready.push(item);
    }
  }
}
