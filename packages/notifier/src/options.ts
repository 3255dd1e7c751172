import {
  type Connection,
  type OptionTable,
  option,
  type RedisInput,
  shardsOption,
  TIMES,
  type WaitOptions,
  waitOptions,
} from '@piecework/protocol';
import { z } from 'zod';

export interface NotifierOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | Connection;
  /** Queue whose agenda is looked at while somebody waits, and that knows which ids ended. @default 'req' */
  readonly queue?: string | undefined;
  /** How many shards the queue has, from 1 to 64: the same for all who use it. @default 1 */
  readonly shards?: number | undefined;
  /**
   * How often the state of everything awaited is read although nothing was heard, in ms, ±20 % of a tenth.
   * It is what a lost notice costs at most; a tenth of it where up to 150 are awaited, for up to five minutes
   * at the default. @default 15000
   */
  readonly sweepMs?: number | undefined;
  /**
   * How long `status` goes on trying while Redis is unreachable, loading, or a hash slot is on its way or
   * served by nobody, in ms, before it throws what it was answered last; 0: not at all. What waits has
   * `timeoutMs` instead. A Redis that was never reached is told at once by all of them. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /** Told of what went wrong and is tried again, as a broken connection. @default nothing is told */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export const notifierOptions: OptionTable = {
  redis: option.custom(
    z.any().refine((value) => value !== undefined && value !== null),
    'where Redis is',
  ),
  queue: option.name('req'),
  shards: shardsOption,
  sweepMs: option.ms(10, 600_000, 15_000),
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
  onError: option.custom(
    z.any().refine((value) => typeof value === 'function'),
    'a function',
  ),
};

export interface ResultsOptions extends WaitOptions {
  /**
   * As they were settled (of what one worker settled in one call, successes first), or in the order
   * of the items. @default 'completion'
   */
  readonly order?: 'completion' | 'index' | undefined;
  /** Whether failed sub-requests are given too. @default false */
  readonly failed?: boolean | undefined;
  /** The `cursor` of the last item that was dealt with, of the same order: goes on behind it. */
  readonly cursor?: string | undefined;
  /**
   * For `order: 'index'`: how much text of results that came early is held, in bytes, about. What
   * does not fit is remembered by 8 bytes and read again when its turn comes. @default 8388608
   */
  readonly bufferBytes?: number | undefined;
}

/** As they are without `failed`: each item is a success, and has a `value`. */
export type SuccessesOptions = ResultsOptions & { readonly failed?: false | undefined };

export const resultsOptions: OptionTable = {
  order: option.word('completion', 'index'),
  failed: option.boolean(false),
  cursor: option.custom(z.string(), 'the cursor of an item of the same order'),
  bufferBytes: option.integer(1, 1_073_741_824, 8_388_608),
  ...waitOptions,
};

/** The options after the check, defaults filled in. */
export type CheckedResultsOptions = Required<
  Pick<ResultsOptions, 'order' | 'failed' | 'bufferBytes'>
> &
  Pick<ResultsOptions, 'cursor'> &
  WaitOptions;

export interface ProgressOptions extends WaitOptions {
  /** Time between two reports, in ms. @default 1000 */
  readonly everyMs?: number | undefined;
}

export const progressOptions: OptionTable = {
  everyMs: option.ms(10, 3_600_000, 1_000),
  ...waitOptions,
};
