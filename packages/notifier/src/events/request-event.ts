import type { ProgressReport } from '../progress/progress.js';
import type { FailedItem, SucceededItem } from '../results/result-item.js';
import type { CompletionOutcome } from '../waiting/outcome.js';

interface OfRequest {
  readonly requestId: string;
  /** Pass it to `events` to continue behind this event. */
  readonly cursor: string;
}

/** A sub-request has succeeded, and its result is recorded. Each comes once, in the order of `results`. */
export type SucceededEvent<Result = unknown> = { readonly type: 'succeeded' } & OfRequest &
  Omit<SucceededItem<Result>, 'status' | 'cursor'>;

/** A sub-request has failed for good. After a redrive it may succeed, or fail once more. */
export type FailedEvent = { readonly type: 'failed' } & OfRequest &
  Omit<FailedItem, 'status' | 'cursor'>;

/** How far the request is; the counts may be ahead of the events of sub-requests. */
export type ProgressEvent = { readonly type: 'progress' } & OfRequest & ProgressReport;

/** The request is complete. The last event. */
export interface CompletedEvent extends OfRequest {
  readonly type: 'completed';
  readonly outcome: CompletionOutcome;
}

export type RequestEvent<Result = unknown> =
  | SucceededEvent<Result>
  | FailedEvent
  | ProgressEvent
  | CompletedEvent;
