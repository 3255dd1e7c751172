import {
  AbortError,
  checkOption,
  checkOptions,
  decode,
  isAborted,
  type OptionTable,
  option,
  type TimedOutcome,
} from '@piecework/protocol';
import { canonical } from './canonical.js';
import { Holding } from './holding.js';
import { Locks } from './locks.js';
import {
  type CheckedTimedOptions,
  demand,
  leaseMs,
  type Moment,
  moment,
  pollMs,
  signal,
  type TimedOptions,
  timedOptions,
} from './options.js';
import { streamOf } from './stream.js';
import { restMs, Taker, type Took } from './taker.js';
import { TimedSet } from './timed-set.js';

export interface SchedulerOptions extends TimedOptions {
  /** @default 'scheduler' */
  readonly name?: string | undefined;
  /** Largest object as JSON, in bytes. @default 65536 */
  readonly maxObjectBytes?: number | undefined;
}

export const schedulerOptions: OptionTable = {
  ...timedOptions('scheduler'),
  maxObjectBytes: option.integer(1, 1_048_576, 65_536),
};

export interface TakeDueOptions {
  /** How long what is taken is locked, in ms; then others get it. 100 to a day. @default 30000 */
  readonly lockMs?: number | undefined;
  /** At most so many. 1 to 1000. @default 1 */
  readonly count?: number | undefined;
  /** How long to wait for something to be due, in ms. @default 0 */
  readonly waitMs?: number | undefined;
  /** Ends the wait with AbortError. */
  readonly signal?: AbortSignal | undefined;
}

export const takeDueOptions: OptionTable = {
  lockMs: leaseMs,
  count: option.integer(1, 1_000, 1),
  waitMs: option.ms(0, 2_147_483_647, 0),
  signal,
};

export interface DueOptions {
  /** How long what is taken is locked, in ms; then others get it. 100 to a day. @default 30000 */
  readonly lockMs?: number | undefined;
  /** Most objects that this stream holds locked and that are not removed. 1 to 10000. @default 1 */
  readonly demand?: number | undefined;
  /** Looks so often, in ms, instead of being woken. @default it is woken */
  readonly pollMs?: number | undefined;
  /** Ends the stream, without an error. */
  readonly signal?: AbortSignal | undefined;
}

export const dueOptions: OptionTable = { lockMs: leaseMs, demand, pollMs, signal };

/** An object that is due, and locked for this Scheduler. Times are the server's, in ms. */
export interface Due<T> {
  readonly object: T;
  /** When it was to be. */
  readonly at: number;
  /** When others get it, if it was not removed. */
  readonly lockedUntil: number;
}

/**
 * Objects and the times from which they are due. An object is a JSON value; those of equal content are
 * one, whatever the order of their fields. What is due goes to one taker, which removes it when it
 * is done; what was not removed when its lock ends goes to another.
 */
export class Scheduler<T = unknown> implements AsyncDisposable {
  readonly #set: TimedSet;
  readonly #maxBytes: number;
  readonly #locks = new Locks();
  readonly #takers: Taker[] = [];

  /** @throws InvalidOptionError */
  constructor(options: SchedulerOptions) {
    const checked = checkOptions<CheckedTimedOptions & { maxObjectBytes: number }>(
      schedulerOptions,
      options,
    );
    this.#maxBytes = checked.maxObjectBytes;
    this.#set = new TimedSet('schedule', checked);
  }

  /**
   * Puts an object, or moves it. The lock that this Scheduler has on it ends; if somebody else has it
   * locked, it comes at the new time once that one removes it, or with the end of that lock.
   * @throws InvalidOptionError, PayloadError before anything is written · IndeterminateError: it may have
   *   been carried out, and asking again is safe · ConnectionError, ServerError · ClosedError
   */
  async enqueue(object: T, at: Moment): Promise<void> {
    checkOption('at', at, moment);
    const key = this.#keyOf(object);
    const token = this.#locks.tokenOf(key);
    await this.#set.put({ key, token: token ?? '', time: Number(at), payload: '' });
    this.#locks.forget(key, token);
  }

  /**
   * Removes an object. Locked by this Scheduler, only what it was taken for is over: a time to which
   * somebody has moved it since stands. Not locked by this one, it is removed whoever has it.
   * Answers whether it was there, and, if it had been locked here, nobody else had taken it since.
   * @throws as `enqueue`
   */
  async remove(object: T): Promise<boolean> {
    const key = this.#keyOf(object);
    const token = this.#locks.tokenOf(key);
    const outcome: TimedOutcome =
      token === undefined
        ? { key, token: '', verb: 'remove', value: '' }
        : { key, token, verb: 'done', value: '' };
    const verdict = await this.#set.settle(outcome);
    this.#locks.forget(key, token);
    return verdict === 'ok';
  }

  /**
   * Takes what is due, the earliest first; none when nothing was due within `waitMs`. Large objects come in several
   * calls: fewer than `count` when these last for more than a quarter of `lockMs`.
   * @throws InvalidOptionError · AbortError · ConditionError · as `enqueue` otherwise
   */
  async takeDue(options: TakeDueOptions = {}): Promise<Due<T>[]> {
    const checked = checkOptions<Required<TakeDueOptions>>(takeDueOptions, options);
    const taker = this.#takers.pop() ?? new Taker(this.#set.commands);
    try {
      return await this.#takeDue(taker, checked);
    } finally {
      this.#takers.push(taker);
    }
  }

  async #takeDue(
    taker: Taker,
    { lockMs, count, waitMs, signal: asked }: Required<TakeDueOptions>,
  ): Promise<Due<T>[]> {
    const { wakes, closing } = this.#set;
    const signals = asked ? [asked, closing] : [closing];
    const endMs = performance.now() + waitMs;
    const holdings: Holding[] = [];
    for (;;) {
      this.#expectGoingOn(asked);
      const { mark } = wakes;
      let took: Took;
      try {
        took = await this.#set.call(() => taker.take(count - holdings.length, lockMs));
      } catch (error) {
        // What is locked already is handed out; asked again, the error comes again.
        if (holdings.length > 0 && !closing.aborted) return this.#givenAll(holdings);
        throw error;
      }
      holdings.push(...this.#held(took));
      // Answered is what an earlier call took whose answer was lost; it may have asked for more.
      await this.#giveBack(holdings.splice(count));
      if (isAborted(signals)) await this.#giveBack(holdings);
      this.#expectGoingOn(asked);
      // One call takes only so many bytes. No more is asked for when much of the first one's lock is over.
      const cut = took.taken.length > 0 && holdings.length < count && took.next <= took.now;
      if (cut && performance.now() - (holdings[0] as Holding).renewedMs < lockMs / 4) continue;
      const leftMs = endMs - performance.now();
      if (holdings.length > 0 || leftMs <= 0) return this.#givenAll(holdings);
      await wakes.wait({ mark, ms: Math.min(leftMs, restMs(took)), signals, woken: true });
    }
  }

  /**
   * What is due, one by one, the earliest first. At most `demand` are locked for this stream and not
   * removed, moved or out of their lock.
   * @throws InvalidOptionError · in the loop: ConnectionError when there never was a Redis, ConditionError, and
   *   what asking again does not help against
   */
  due(options: DueOptions = {}): AsyncGenerator<Due<T>, void, undefined> {
    const checked = checkOptions<Required<DueOptions>>(dueOptions, options);
    const { lockMs, ...rest } = checked;
    this.#set.expectOpen();
    const parts = { ...rest, leaseMs: lockMs, renews: false };
    return streamOf(this.#set, parts, (holding) => this.#given(holding));
  }

  /** How many are there, locked ones apart; `next`: from when any may be taken, server time in ms. */
  async counts(): Promise<{ waiting: number; locked: number; next: number | undefined }> {
    const { waiting, leased, next } = await this.#set.ask(() => this.#set.commands.counts());
    return { waiting, locked: leased, next };
  }

  /** What a key of the condition is called in Redis. @throws InvalidOptionError */
  conditionKey(name: string): string {
    return this.#set.conditionKey(name);
  }

  /** Removes everything, whoever has it. */
  drop(): Promise<void> {
    return this.#set.drop();
  }

  /** Ends its streams and waits; what it holds is left to the end of its lock. */
  close(): Promise<void> {
    return this.#set.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #keyOf(object: T): string {
    this.#set.expectOpen();
    return canonical(object, this.#maxBytes);
  }

  #expectGoingOn(asked: AbortSignal | undefined): void {
    this.#set.expectOpen();
    if (asked?.aborted) throw new AbortError('takeDue', asked.reason);
  }

  #held({ taken, token, now, ends, sentMs }: Took): Holding[] {
    const lease = { token, lockedUntil: ends, sentMs, leftMs: ends - now };
    return taken.map((one) => new Holding(one, lease, () => {}));
  }

  async #giveBack(holdings: readonly Holding[]): Promise<void> {
    const back = holdings.map(({ taken: { key }, token }) =>
      this.#set.settle({ key, token, verb: 'back', value: '' }),
    );
    await Promise.allSettled(back);
  }

  #givenAll(holdings: readonly Holding[]): Due<T>[] {
    return holdings.map((one) => this.#given(one));
  }

  #given(holding: Holding): Due<T> {
    this.#locks.add(holding);
    const { taken, lockedUntil } = holding;
    return { object: decode(taken.key) as T, at: taken.at, lockedUntil };
  }
}
