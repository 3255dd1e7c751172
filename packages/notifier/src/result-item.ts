import { decode, decodeError, type KeptError } from '@piecework/protocol';
import type { ReadItem } from './result-reader.js';

/** A sub-request that succeeded. */
export interface SucceededItem<Result = unknown> {
  readonly index: number;
  readonly status: 'succeeded';
  readonly value: Result;
  /** Pass it to `results` to go on behind this item. */
  readonly cursor: string;
}

/** A sub-request that failed for good. */
export interface FailedItem {
  readonly index: number;
  readonly status: 'failed';
  /** What the handler threw last: name, message and, where there was one, stack. */
  readonly error: KeptError;
  readonly cursor: string;
}

/** One sub-request's outcome, as `results` gives it. */
export type ResultItem<Result = unknown> = SucceededItem<Result> | FailedItem;

export function resultItem<Result>(item: ReadItem, cursor: string): ResultItem<Result> {
  const { index, kind, text } = item;
  return kind === 'succeeded'
    ? { index, status: kind, value: decode(text) as Result, cursor }
    : { index, status: 'failed', error: decodeError(text), cursor };
}
