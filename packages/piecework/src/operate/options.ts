import { requestOptions } from '@piecework/producer/options';
import {
  LONGEST_DELAY_MS,
  limitOption,
  type OptionTable,
  option,
  type ToleratedFailures,
  toleratedFailuresOption,
} from '@piecework/protocol/contract';

/*
 * Options of calls that are also commands. The command line makes flags of these tables, for which it should load nothing
 * that talks to Redis.
 */

export interface ListOptions {
  /** 'open': not ended. 'ended': the last 1,000 of a week, as long as they are retained. @default 'open' */
  readonly state?: 'open' | 'ended' | 'all' | undefined;
}

export const listOptions: OptionTable = { state: option.word('open', 'ended', 'all') };

export interface RunningOptions {
  /** At most this many, from 1 to 10,000: those that run longest. @default 100 */
  readonly limit?: number | undefined;
  /** Only sub-requests that have run for at least this time, in ms. @default 0 */
  readonly longerThanMs?: number | undefined;
}

export const runningOptions: OptionTable = {
  limit: option.integer(1, 10_000, 100),
  longerThanMs: option.ms(0, LONGEST_DELAY_MS, 0),
};

export interface PauseQueueOptions {
  /** After this time the queue resumes by itself, in ms, up to a year; 0: only `resumeQueue` does. @default 0 */
  readonly forMs?: number | undefined;
}

export const pauseQueueOptions: OptionTable = { forMs: option.ms(0, 31_536_000_000, 0) };

/** Changes to a request; what is left out stays as it is. */
export interface UpdateOptions {
  /**
   * Greatest number of sub-requests that run at once, from 1 to 1000000; null: no limit. With a lowered limit
   * nothing starts until fewer run, once its workers have learnt of it: as with `Admin.pause`. @default as it is
   */
  readonly limit?: number | null | undefined;
  /** 0 is served first, 99 last. @default as it is */
  readonly priority?: number | undefined;
  /** How many sub-requests may fail in a request that succeeds, as at submission. @default as it is */
  readonly toleratedFailures?: ToleratedFailures | undefined;
}

const unset = ({ default: _, ...spec }: OptionTable[string]) => spec;

export const updateOptions: OptionTable = {
  limit: limitOption,
  priority: unset(requestOptions['priority'] as OptionTable[string]),
  toleratedFailures: unset(toleratedFailuresOption),
};
