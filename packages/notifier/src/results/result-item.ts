import { decodeFailure, decodeResult, type KeptError, type Timing } from '@piecework/protocol';
import type { ReadItem } from './read-entry.js';

/** A sub-request that succeeded. */
export interface SucceededItem<Result = unknown> {
  readonly index: number;
  readonly status: 'succeeded';
  readonly value: Result;
  /** When, where and for how long it ran; only of a request that was submitted with `timing`. */
  readonly timing?: Timing;
  /** Pass it to `results` to continue behind this item. */
  readonly cursor: string;
}

/** A sub-request that failed for good. */
export interface FailedItem {
  readonly index: number;
  readonly status: 'failed';
  /** What the handler threw last: name, message and, where there was one, stack. */
  readonly error: KeptError;
  /** As of a success; absent when its last run ended with its worker. */
  readonly timing?: Timing;
  /** Pass it to `results` to continue behind this item. */
  readonly cursor: string;
}

/** The outcome of one sub-request, as `results` yields it. */
export type ResultItem<Result = unknown> = SucceededItem<Result> | FailedItem;

export function resultItem<Result>(
  item: ReadItem,
  cursor: string,
  jsonText: boolean,
): ResultItem<Result> {
  const { index, kind, text } = item;
  if (kind !== 'succeeded') return { index, status: 'failed', ...decodeFailure(text), cursor };
  const decoded = decodeResult(text, jsonText);
  const value = decoded.value as Result;
  const { timing } = decoded;
  return timing
    ? { index, status: kind, value, timing, cursor }
    : { index, status: kind, value, cursor };
}
