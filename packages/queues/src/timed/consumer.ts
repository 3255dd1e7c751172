import {
  backoff,
  isAborted,
  onAbort,
  PieceworkError,
  pause,
  type TimedOutcome,
  type TimedVerdict,
} from '@piecework/protocol';
import { Holding } from './holding.js';
import { TakenLeases } from './taken-leases.js';
import { restMs, type Taker, type Took } from './taker.js';
import type { Wakes } from './wakes.js';

/** Most keys of one take. */
const MOST = 1_000;

export interface ConsumerParts {
  readonly taker: Taker;
  readonly wakes: Wakes;
  readonly settle: (outcome: TimedOutcome) => Promise<TimedVerdict>;
  /** Most keys that are held at once. */
  readonly demand: number;
  readonly leaseMs: number;
  /** Whether leases are renewed while the consumer lives. */
  readonly renews: boolean;
  /** Looks so often, in ms, instead of being woken. */
  readonly pollMs: number | undefined;
  /** Each of them ends it. */
  readonly signals: readonly AbortSignal[];
  readonly onError: (error: unknown) => void;
}

/**
 * One stream of what is due: takes as much as there is room for, hands out one by one, and waits where
 * there is nothing or no room. Held is what was taken and is neither settled nor lost, handed out or not.
 * While Redis cannot be asked it goes on asking, with backoff.
 */
export class Consumer {
  readonly #parts: ConsumerParts;
  readonly #leases: TakenLeases;
  readonly #ready: Holding[] = [];
  readonly #backoff = backoff(50, 5_000);
  #taking: Promise<unknown> = Promise.resolve();
  #ended = false;
  #onRoom = () => {};
  /** Nothing is due until then, by our own clock, unless a notice changes the mark. */
  #rest: { readonly mark: number; readonly untilMs: number } | undefined;

  constructor(parts: ConsumerParts) {
    this.#parts = parts;
    const { leaseMs, renews, settle, onError } = parts;
    this.#leases = new TakenLeases(leaseMs, renews ? settle : undefined, onError);
  }

  /** It has ended, and nothing of what it took is in anybody's hands. */
  get isOver(): boolean {
    return this.#ended && this.held === 0;
  }

  /** How many keys are held. */
  get held(): number {
    return this.#leases.size;
  }

  /**
   * The next one, when there is one; undefined when the consumer has ended.
   * @throws ConditionError, and whatever asking again does not help against
   */
  async next(): Promise<Holding | undefined> {
    const { wakes, pollMs, demand } = this.#parts;
    while (!this.#ending) {
      const ready = this.#ready.shift();
      if (ready && this.#leases.keeps(ready)) return ready;
      if (ready) continue;
      if (this.held >= demand) {
        await this.#room();
        continue;
      }
      await this.#untilDue();
      if (this.#ending) break;
      const { mark } = wakes;
      const count = Math.min(MOST, demand - this.held);
      const took = await this.#take(count);
      // With less than was asked for, all that is due has been taken.
      if (took && took.taken.length < count)
        this.#rest = { mark, untilMs: performance.now() + (pollMs ?? restMs(took)) };
    }
    return undefined;
  }

  /** Gives back what was not handed out. What was is renewed until it is settled, unless `forgotten`. */
  async end({ forgotten }: { forgotten: boolean }): Promise<void> {
    this.#ended = true;
    this.#onRoom();
    if (forgotten) this.#leases.stopRenewing();
    await this.#taking;
    const back = this.#ready.splice(0).map(async (holding) => {
      const { taken, token } = holding;
      holding.end();
      await this.#parts.settle({ key: taken.key, token, verb: 'back', value: '' });
    });
    // What could not be given back comes back with the end of its lease.
    await Promise.allSettled(back);
  }

  /** Whatever is held is lost, for `reason`: nobody will renew it. */
  abandon(reason: Error): void {
    this.#leases.end(reason);
  }

  get #ending(): boolean {
    return this.#ended || isAborted(this.#parts.signals);
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
      this.#hold(took);
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

  #hold({ taken, token, now, ends, sentMs }: Took): void {
    const onOver = (holding: Holding) => {
      this.#leases.delete(holding);
      this.#onRoom();
    };
    const lease = { token, lockedUntil: ends, sentMs, leftMs: ends - now };
    for (const one of taken) {
      const holding = new Holding(one, lease, onOver);
      this.#leases.add(holding);
      this.#ready.push(holding);
    }
  }
}
