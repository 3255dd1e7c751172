import {
  AbortError,
  checkOption,
  checkOptions,
  decode,
  isAborted,
  type Jsonify,
  type OptionTable,
  option,
  type TimedOutcome,
} from '@piecework/protocol';
import { canonical } from './canonical.js';
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
import { TakenItem } from './taken-item.js';
import { restMs, Taker, type Took } from './taker.js';
import { TimedSet } from './timed-set.js';

export interface SchedulerOptions extends TimedOptions {
  /** @default 'scheduler' */
  readonly name?: string | undefined;
  /** Largest object, in bytes of JSON. @default 65536 */
  readonly maxObjectBytes?: number | undefined;
}

export const schedulerOptions: OptionTable = {
  ...timedOptions('scheduler'),
  maxObjectBytes: option.integer(1, 1_048_576, 65_536),
};

export interface TakeDueOptions {
  /** How long a taken object is locked, in ms; after that others get it. 100 to a day. @default 30000 */
  readonly lockMs?: number | undefined;
  /** Takes at most this many. 1 to 1000. @default 1 */
  readonly count?: number | undefined;
  /** How long to wait until an object is due, in ms. @default 0 */
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
  /** How long a taken object is locked, in ms; after that others get it. 100 to a day. @default 30000 */
  readonly lockMs?: number | undefined;
  /** At most this many objects locked by this stream and not yet removed. 1 to 10000. @default 1 */
  readonly demand?: number | undefined;
  /** Polls at this interval, in ms, instead of being woken when an object is due. @default it is woken */
  readonly pollMs?: number | undefined;
  /** Ends the stream, without an error. */
  readonly signal?: AbortSignal | undefined;
}

export const dueOptions: OptionTable = { lockMs: leaseMs, demand, pollMs, signal };

/** An object that is due, and locked by this Scheduler. Times are the server's, in ms since 1970. */
export interface DueItem<T> {
  readonly object: T;
  /** The time from which it was due. */
  readonly at: number;
  /** When others get it, unless it is removed before. */
  readonly lockedUntil: number;
}

/**
 * Objects and the times from which they are due. An object is a JSON value; values of equal content are one object,
 * whatever the order of their fields. Each due object goes to one taker, which removes it when its work is done. If it
 * is not removed before its lock ends, it goes to another taker.
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
   * Puts an object, or moves it to another time. This releases the lock that this Scheduler has on it. If another
   * Scheduler has it locked, the object is due at the new time, but not before that one removes it or its lock ends.
   * @throws InvalidOptionError, PayloadError before anything is written · IndeterminateError: it may have been carried
   *   out; it is safe to call again · ConnectionError, ServerError · ClosedError
   */
  async enqueue(object: T | Jsonify<T>, at: Moment): Promise<void> {
    checkOption('at', at, moment);
    const key = this.#keyOf(object);
    const token = this.#locks.tokenOf(key);
    await this.#set.put({ key, token: token ?? '', time: Number(at), payload: '' });
    this.#locks.forget(key, token);
  }

  /**
   * Removes an object. If this Scheduler has it locked, only the occurrence that it took is removed: a new time that
   * was enqueued since remains. Otherwise the object is removed, whichever consumer has it locked.
   * Returns false if the object was not there, or if this Scheduler had it locked and another has taken it since.
   * @throws as `enqueue`
   */
  async remove(object: T | Jsonify<T>): Promise<boolean> {
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
   * Takes objects that are due, the earliest first; none if nothing was due within `waitMs`. Large objects take several
   * calls: if these last longer than a quarter of `lockMs`, it returns fewer than `count`.
   * @throws InvalidOptionError · AbortError · ConditionError · as `enqueue` otherwise
   */
  async takeDue(options: TakeDueOptions = {}): Promise<DueItem<Jsonify<T>>[]> {
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
  ): Promise<DueItem<Jsonify<T>>[]> {
    const { wakes, closing } = this.#set;
    const signals = asked ? [asked, closing] : [closing];
    const endMs = performance.now() + waitMs;
    const items: TakenItem[] = [];
    for (;;) {
      this.#throwIfEnded(asked);
      const { mark } = wakes;
      let took: Took;
      try {
        took = await this.#set.call(() => taker.take(count - items.length, lockMs));
      } catch (error) {
        // Hand out what is locked already; the next call meets the error again.
        if (items.length > 0 && !closing.aborted) return this.#handOutAll(items);
        throw error;
      }
      items.push(...this.#itemsOf(took));
      // The answer may be that of an earlier call whose reply was lost, and which wanted more.
      await this.#giveBack(items.splice(count));
      if (isAborted(signals)) await this.#giveBack(items);
      this.#throwIfEnded(asked);
      // One call takes a bounded number of bytes. Stop when a quarter of the first object's lock has passed.
      // cure: a take that brings fewer items than asked for is continued
      const cut = took.taken.length > 0 && items.length < count && took.next <= took.now;
      if (cut && performance.now() - (items[0] as TakenItem).renewedMs < lockMs / 4) continue;
      const leftMs = endMs - performance.now();
      if (items.length > 0 || leftMs <= 0) return this.#handOutAll(items);
      await wakes.wait({ mark, ms: Math.min(leftMs, restMs(took)), signals, woken: true });
    }
  }

  /**
   * A stream of the objects that are due, the earliest first. An object counts against `demand` until it is removed or
   * moved, or its lock ends.
   * @throws InvalidOptionError · in the loop: ConnectionError if Redis was never reached, ConditionError, and every
   *   error that is not retryable
   */
  due(options: DueOptions = {}): AsyncGenerator<DueItem<Jsonify<T>>, void, undefined> {
    const checked = checkOptions<Required<DueOptions>>(dueOptions, options);
    const { lockMs, ...rest } = checked;
    this.#set.expectOpen();
    const parts = { ...rest, leaseMs: lockMs, renews: false };
    return streamOf(this.#set, parts, (item) => this.#handOut(item));
  }

  /** Numbers of objects. `next`: when the next one may be taken, by the server's clock, in ms since 1970. */
  async counts(): Promise<{ waiting: number; locked: number; next: number | undefined }> {
    const { waiting, leased, next } = await this.#set.ask(() => this.#set.commands.counts());
    return { waiting, locked: leased, next };
  }

  /** The name in Redis of a key of the condition. @throws InvalidOptionError */
  conditionKey(name: string): string {
    return this.#set.conditionKey(name);
  }

  /** Removes everything, also objects that are locked. */
  drop(): Promise<void> {
    return this.#set.drop();
  }

  /** Ends its streams and waits for calls. Objects that it has locked stay locked until their locks end. */
  close(): Promise<void> {
    return this.#set.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #keyOf(object: T | Jsonify<T>): string {
    this.#set.expectOpen();
    return canonical(object, this.#maxBytes);
  }

  #throwIfEnded(asked: AbortSignal | undefined): void {
    this.#set.expectOpen();
    if (asked?.aborted) throw new AbortError('takeDue', asked.reason);
  }

  #itemsOf({ taken, token, now, ends, sentMs }: Took): TakenItem[] {
    const lease = { token, lockedUntil: ends, sentMs, leftMs: ends - now };
    return taken.map((one) => new TakenItem(one, lease, () => {}));
  }

  async #giveBack(items: readonly TakenItem[]): Promise<void> {
    const back = items.map(({ taken: { key }, token }) =>
      this.#set.settle({ key, token, verb: 'back', value: '' }),
    );
    await Promise.allSettled(back);
  }

  #handOutAll(items: readonly TakenItem[]): DueItem<Jsonify<T>>[] {
    return items.map((one) => this.#handOut(one));
  }

  #handOut(item: TakenItem): DueItem<Jsonify<T>> {
    this.#locks.add(item);
    const { taken, lockedUntil } = item;
    return { object: decode(taken.key) as Jsonify<T>, at: taken.at, lockedUntil };
  }
}
