export { type RequestEventsOptions, requestEventsOptions } from './events/event-options.js';
export type {
  CompletedEvent,
  FailedEvent,
  ProgressEvent,
  RequestEvent,
  SucceededEvent,
} from './events/request-event.js';
export { type FailureKind, FailureKinds } from './failures/failure-kinds.js';
export {
  type FailureGroupsOptions,
  type FailuresOptions,
  failuresOptions,
} from './failures/failure-options.js';
export type { Failure, FailureGroup } from './failures/failures.js';
export { Notifier } from './notifier.js';
export type { NotifierOptions } from './options.js';
export type { Generation, RequestDetails, SubmittedOptions } from './progress/details.js';
export type { ProgressReport } from './progress/progress.js';
export type { ProgressOptions } from './progress/progress-options.js';
export type {
  ProducerSigns,
  RetrySigns,
  SilentWorker,
  WaitingFor,
} from './progress/snapshot.js';
export { QueueSigns } from './progress/standstill.js';
export { type RequestPhase, type RequestStatus, statusOf } from './progress/status.js';
export type { FailedItem, ResultItem, SucceededItem } from './results/result-item.js';
export type { ResultsOptions, SuccessesOptions } from './results/result-options.js';
export type { Results } from './results/results.js';
export type { NamedChannel } from './waiting/caller-channel.js';
export { CompletionOutcome, type Counts } from './waiting/outcome.js';
