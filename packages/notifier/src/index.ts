export { type FailuresOptions, failuresOptions } from './failure-options.js';
export type { Failure, FailureGroup } from './failures.js';
export { Notifier } from './notifier.js';
export {
  type NotifierOptions,
  notifierOptions,
  type ProgressOptions,
  progressOptions,
  type ResultsOptions,
  resultsOptions,
  type SuccessesOptions,
} from './options.js';
export { CompletionOutcome, type Counts } from './outcome.js';
export type { ProgressReport } from './progress.js';
export type { FailedItem, ResultItem, SucceededItem } from './result-item.js';
export { type RequestStatus, statusOf, type WaitingFor } from './status.js';
