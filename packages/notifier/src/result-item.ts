import { decodeFailure, decodeResult, type KeptError, type Timing } from '@piecework/protocol';
import type { ReadItem } from './read-entry.js';

/** A sub-request that succeeded. */
export interface SucceededItem<Result = unknown> {
  readonly index: number;
  readonly status: 'succeeded';
  readonly value: Result;
  /** When and where it ran; only of a request that was submitted with `timing`. */
  readonly timing?: Timing;
  /** Pass it to `results` to go on behind this item. */
  readonly cursor: string;
}

/** A sub-request that failed for good. */
export interface FailedItem {
  readonly index: number;
  readonly status: 'failed';
  /** What the handler threw last: name, message and, where there was one, stack. */
  readonly error: KeptError;
  /** As of a success; none where its worker ended instead. */
  readonly timing?: Timing;
  readonly cursor: string;
}

/** One sub-request's outcome, as `results` gives it. */
export type ResultItem<Result = unknown> = SucceededItem<Result> | FailedItem;

export function resultItem<Result>(item: ReadItem, cursor: string): ResultItem<Result> {
  const { index, kind, text } = item;
  if (kind !== 'succeeded') return { index, status: 'failed', ...decodeFailure(text), cursor };
  const { value, ...timing } = decodeResult(text);
  return { index, status: kind, value: value as Result, ...timing, cursor };
}
