import {
  type Connection,
  type OptionTable,
  option,
  type RedisInput,
  type WaitOptions,
  waitOptions,
} from '@piecework/protocol';
import { z } from 'zod';

export interface NotifierOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | Connection;
  /** @default 'req' */
  readonly queue?: string;
  /** How often the states of everything awaited are read although no notice came, in ms. @default 15000 */
  readonly sweepMs?: number;
}

export const notifierOptions: OptionTable = {
  redis: option.custom(
    z.any().refine((v) => v !== undefined && v !== null),
    'where Redis is',
  ),
  queue: option.name('req'),
  sweepMs: option.ms(10, 3_600_000, 15_000),
};

export interface ResultsOptions extends WaitOptions {
  /** As they complete, or as the items were submitted. @default 'completion' */
  readonly order?: 'completion' | 'index';
  /** Failed sub-requests too. @default false */
  readonly failed?: boolean;
  /** Goes on behind the result that carried this cursor; same order as then. */
  readonly cursor?: string;
  /** Index order: how much encoded text waits for its turn in memory, in bytes. @default 8388608 */
  readonly bufferBytes?: number;
}

const ORDER = option.word('completion', 'index');

export const resultsOptions: OptionTable = {
  order: ORDER,
  failed: option.boolean(false),
  cursor: option.custom(z.string().regex(/^(c\d+-\d+\.\d+|i\d+)$/), 'the cursor of a result'),
  bufferBytes: option.integer(0, 1_073_741_824, 8_388_608),
  ...waitOptions,
};

export interface ProgressOptions extends WaitOptions {
  /** Time between two reports, in ms. @default 1000 */
  readonly everyMs?: number;
}

export const progressOptions: OptionTable = {
  everyMs: option.ms(20, 3_600_000, 1_000),
  ...waitOptions,
};
