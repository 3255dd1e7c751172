import {
  checkOptions,
  decode,
  encodePayload,
  InvalidOptionError,
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
import { RetryTask, timeOf } from './retry-task.js';
import { streamOf } from './stream.js';
import { TimedSet } from './timed-set.js';

export interface RetryQueueOptions extends TimedOptions {
  /** @default 'retry' */
  readonly name?: string | undefined;
  /** How many discarded tasks are kept; the oldest go. 0 to 1000000. @default 10000 */
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
  /** How long from now on, in ms. 0 to a year. Not with `at`. */
  readonly delayMs?: number | undefined;
  /**
   * Its name: putting it again while it is there moves it, gives it this payload, and forgets its
   * failures. @default a random one
   */
  readonly key?: string | undefined;
}

export const putOptions: OptionTable = {
  at: moment,
  delayMs: option.ms(0, 31_536_000_000),
  key: option.custom(option.name().schema, `as ${NAME}`),
};

export const taskOptions: OptionTable = { demand, leaseMs, pollMs, signal };

/** A task that was discarded. Times are the server's, in ms. */
export interface DiscardedTask<T> {
  readonly key: string;
  readonly created: number;
  readonly numFailures: number;
  readonly payload: T;
  readonly message: string;
  readonly at: number;
}

const PAGE = 100;

let made = 0;

/** A key that nobody else makes. Of tasks that are due in the same millisecond, one process's come in its order. */
function freshKey(): string {
  made += 1;
  return made.toString(36).padStart(8, '0') + nanoid(14);
}

/**
 * Tasks in the order of their next attempt. Consumers take what is due, under a lease that they renew,
 * and say of each task that it is done, is to come again, or has failed for good. A task whose consumer
 * died or stood still comes back with the end of its lease.
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
   * Puts a task; answers its key.
   * @throws InvalidOptionError, PayloadError before anything is written · IndeterminateError: it may have
   *   been put, and putting it again is safe with a `key` · ConnectionError, ServerError · ClosedError
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
   * What is due, the earliest first, as a stream; several may be read side by side, in any process. It
   * ends when `signal` aborts or the queue is closed. All that is due, up to the demand, is taken in one
   * call. `from()` of RxJS takes it as it is: what the subscriber has not settled is held, and no more
   * than `demand` of that.
   * @throws InvalidOptionError · in the loop: ConnectionError when there never was a Redis, ConditionError, and
   *   what asking again does not help against
   */
  tasks(options: TakeOptions = {}): AsyncGenerator<RetryTask<T>, void, undefined> {
    const parts = checkOptions<Required<TakeOptions>>(taskOptions, options);
    this.#set.expectOpen();
    const { settle } = this.#set;
    return streamOf(
      this.#set,
      { ...parts, renews: true },
      (holding) => new RetryTask<T>(holding, settle),
    );
  }

  /**
   * Runs `handler` for each task that is due, `demand` at once: done when it returns; when it throws, it
   * comes again after `retryDelayMs(numFailures)`, or is discarded as its failure number `maxFailures`. Resolves
   * when the stream has ended and the last handler too.
   * @throws as `tasks` · what `retryDelayMs` threw
   */
  async consume(
    handler: (payload: T, task: RetryTask<T>) => unknown,
    options: ConsumeOptions = {},
  ): Promise<void> {
    const { maxFailures, retryDelayMs, ...rest } = checkOptions<Required<ConsumeOptions>>(
      { ...consumeOptions, ...taskOptions },
      options,
    );
    const running = new Set<Promise<void>>();
    const ending = new AbortController();
    const { signal } = ending;
    const stop = rest.signal && onAbort(rest.signal, () => ending.abort());
    let broken: { readonly error: unknown } | undefined;
    try {
      for await (const task of this.tasks({ ...rest, signal })) {
        const run = handle(task, handler, { maxFailures, retryDelayMs })
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

  /** What was discarded, the oldest first. @throws ConnectionError, ServerError */
  async *failures(): AsyncGenerator<DiscardedTask<T>, void, undefined> {
    for (let cursor = '-'; ; ) {
      const from = cursor;
      const page = await this.#set.ask(() => this.#set.commands.failures(from, PAGE));
      for (const failure of page.found) yield { ...failure, payload: decode(failure.payload) as T };
      if (page.found.length === 0) return;
      cursor = page.cursor;
    }
  }

  /** How many are there; `next`: from when any may be taken, server time in ms. */
  counts(): Promise<{
    waiting: number;
    leased: number;
    failures: number;
    next: number | undefined;
  }> {
    return this.#set.ask(() => this.#set.commands.counts());
  }

  /** What a key of the condition is called in Redis. @throws InvalidOptionError */
  conditionKey(name: string): string {
    return this.#set.conditionKey(name);
  }

  /** Removes all tasks and failures, whoever has them. */
  drop(): Promise<void> {
    return this.#set.drop();
  }

  /** Ends its streams, gives back what was not given out; what was is left to the end of its lease. */
  close(): Promise<void> {
    return this.#set.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
