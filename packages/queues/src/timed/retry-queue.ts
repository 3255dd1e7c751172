import {
  checkOptions,
  decode,
  encodePayload,
  InvalidOptionError,
  type Jsonify,
  LARGEST_VALUE_BYTES,
  NAME,
  type OptionTable,
  onAbort,
  option,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import { type ConsumeOptions, consumeOptions, handle } from './consume.js';
import {
  type CheckedTimedOptions,
  demand,
  leaseMs,
  type Moment,
  moment,
  pollMs,
  signal,
  type TakeOptions,
  type TimedOptions,
  timedOptions,
} from './options.js';
import { RetryItem, timeOf } from './retry-item.js';
import { streamOf } from './stream.js';
import { TimedSet } from './timed-set.js';

export interface RetryQueueOptions extends TimedOptions {
  /** @default 'retry' */
  readonly name?: string | undefined;
  /** The newest so many discarded items are kept. 0 to 1000000. @default 10000 */
  readonly keepFailures?: number | undefined;
  /** Largest encoded payload, in bytes; up to 256 MiB. @default 1048576 */
  readonly maxPayloadBytes?: number | undefined;
}

export const retryQueueOptions: OptionTable = {
  ...timedOptions('retry'),
  keepFailures: option.integer(0, 1_000_000, 10_000),
  maxPayloadBytes: option.integer(1, LARGEST_VALUE_BYTES, 1_048_576),
};

export interface PutOptions {
  /** When it is due. Not with `delayMs`. @default now */
  readonly at?: Moment | undefined;
  /** Due this long from now, in ms. 0 to a year. Not with `at`. */
  readonly delayMs?: number | undefined;
  /**
   * Name of the item. If an item of that name exists, it gets this time and payload, and its failures are forgotten.
   * @default a random one
   */
  readonly key?: string | undefined;
}

export const putOptions: OptionTable = {
  at: moment,
  delayMs: option.ms(0, 31_536_000_000),
  key: option.custom(option.name().fits, `as ${NAME}`),
};

export const takeOptions: OptionTable = { demand, leaseMs, pollMs, signal };

/** An item that was discarded. Times are the server's, in ms since 1970. */
export interface DiscardedItem<T> {
  readonly key: string;
  readonly created: number;
  readonly numFailures: number;
  readonly payload: T;
  readonly message: string;
  readonly at: number;
}

export interface DiscardedOptions {
  /** Which come first: those that were discarded first, or last. @default 'oldest' */
  readonly order?: 'oldest' | 'newest' | undefined;
  /** How many one call to Redis reads, 1 to 100: fewer suit a reader that stops early. @default 100 */
  readonly page?: number | undefined;
}

export const discardedOptions: OptionTable = {
  order: option.word('oldest', 'newest'),
  page: option.integer(1, 100, 100),
};

let keysMade = 0;

/**
 * A unique key. Items of one process that are due in the same millisecond are taken in the order in which it put them.
 */
function freshKey(): string {
  keysMade += 1;
  return keysMade.toString(36).padStart(8, '0') + nanoid(14);
}

/**
 * Items in the order of their next attempt. Consumers take what is due, under a lease that they renew, and settle each
 * item: it is done, comes again, or has failed for good. If a consumer dies or freezes, its items become due again
 * when their leases end.
 */
export class RetryQueue<T = unknown> implements AsyncDisposable {
  readonly #set: TimedSet;
  readonly #maxBytes: number;

  /** @throws InvalidOptionError */
  constructor(options: RetryQueueOptions) {
    const checked = checkOptions<
      CheckedTimedOptions & { keepFailures: number; maxPayloadBytes: number }
    >(retryQueueOptions, options);
    this.#maxBytes = checked.maxPayloadBytes;
    this.#set = new TimedSet('retry', checked, checked.keepFailures);
  }

  /**
   * Puts an item; returns its key.
   * @throws InvalidOptionError, PayloadError before anything is written · IndeterminateError: the item may have
   *   been put; with a `key`, it is safe to put it again · ConnectionError, ServerError · ClosedError
   */
  async put(payload: T, options: PutOptions = {}): Promise<string> {
    const { at, delayMs = 0, key = freshKey() } = checkOptions<PutOptions>(putOptions, options);
    if (at !== undefined && options.delayMs !== undefined)
      throw new InvalidOptionError('at', at, 'no delayMs beside it');
    const text = encodePayload(payload, this.#maxBytes);
    this.#set.expectOpen();
    await this.#set.put({ key, token: '', time: timeOf(at ?? { delayMs }), payload: text });
    return key;
  }

  /**
   * A stream of the items that are due, the earliest first. Any number of streams may be read side by side, in any
   * process. It ends when `signal` aborts or the queue is closed. Everything that is due, up to the demand, is taken in
   * one call. It also works with `from()` of RxJS: there are never more than `demand` unsettled items.
   * @throws InvalidOptionError · in the loop: ConnectionError if Redis was never reached, ConditionError, and every
   *   error that is not retryable
   */
  items(options: TakeOptions = {}): AsyncGenerator<RetryItem<Jsonify<T>>, void, undefined> {
    const parts = checkOptions<Required<TakeOptions>>(takeOptions, options);
    this.#set.expectOpen();
    const { settle } = this.#set;
    return streamOf(
      this.#set,
      { ...parts, renews: true },
      (item) => new RetryItem<Jsonify<T>>(item, settle),
    );
  }

  /**
   * Runs `handler` for each item that is due, up to `demand` at once. When the handler returns, the item is done. When
   * it throws, the item comes again after `retryDelayMs(numFailures)`, or is discarded with failure number
   * `maxFailures`. Resolves when the stream and the last handler have ended.
   * @throws as `items` · what `retryDelayMs` threw
   */
  async consume(
    handler: (payload: Jsonify<T>, item: RetryItem<Jsonify<T>>) => unknown,
    options: ConsumeOptions = {},
  ): Promise<void> {
    const { maxFailures, retryDelayMs, ...rest } = checkOptions<Required<ConsumeOptions>>(
      { ...consumeOptions, ...takeOptions },
      options,
    );
    const running = new Set<Promise<void>>();
    const ending = new AbortController();
    const { signal } = ending;
    const stop = rest.signal && onAbort(rest.signal, () => ending.abort());
    let broken: { readonly error: unknown } | undefined;
    try {
      for await (const item of this.items({ ...rest, signal })) {
        const run = handle(item, handler, { maxFailures, retryDelayMs })
          .catch((error: unknown) => {
            broken ??= { error };
            ending.abort();
          })
          .finally(() => running.delete(run));
        running.add(run);
      }
    } finally {
      stop?.();
      await Promise.all(running);
    }
    if (broken) throw broken.error;
  }

  /**
   * The discarded items, a page of them in each call. @throws InvalidOptionError · ConnectionError, ServerError
   */
  async *failures(
    options: DiscardedOptions = {},
  ): AsyncGenerator<DiscardedItem<Jsonify<T>>, void, undefined> {
    const { order, page: count } = checkOptions<Required<DiscardedOptions>>(
      discardedOptions,
      options,
    );
    for (let cursor = ''; ; ) {
      const from = cursor;
      const page = await this.#set.ask(() => this.#set.commands.failures(from, count, order));
      for (const failure of page.found)
        yield { ...failure, payload: decode(failure.payload) as Jsonify<T> };
      if (page.found.length === 0) return;
      cursor = page.cursor;
    }
  }

  /**
   * Numbers of items. `next`: when the next one may be taken, by the server's clock, in ms since 1970.
   * @throws ClosedError · ConnectionError, ServerError
   */
  counts(): Promise<{
    waiting: number;
    leased: number;
    failures: number;
    next: number | undefined;
  }> {
    return this.#set.ask(() => this.#set.commands.counts());
  }

  /** The name in Redis of a key of the condition. @throws InvalidOptionError */
  conditionKey(name: string): string {
    return this.#set.conditionKey(name);
  }

  /** Removes all items and failures, also those that consumers have taken. */
  drop(): Promise<void> {
    return this.#set.drop();
  }

  /** Ends the streams and gives back items that were not handed out. The leases of the others are no longer renewed. */
  close(): Promise<void> {
    return this.#set.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
