export {
  type CompletedEvent,
  CompletionOutcome,
  type Counts,
  type FailedEvent,
  type FailedItem,
  type Failure,
  type FailureGroup,
  type FailureGroupsOptions,
  type FailuresOptions,
  type Generation,
  Notifier,
  type NotifierOptions,
  type ProducerSigns,
  type ProgressEvent,
  type ProgressOptions,
  type ProgressReport,
  type RequestDetails,
  type RequestEvent,
  type RequestEventsOptions,
  type RequestPhase,
  type RequestStatus,
  type ResultItem,
  type Results,
  type ResultsOptions,
  type RetrySigns,
  type SilentWorker,
  type SubmittedOptions,
  type SucceededEvent,
  type SucceededItem,
  type SuccessesOptions,
  type WaitingFor,
} from '@piecework/notifier';
export {
  type Dedupe,
  type ItemCheck,
  type Items,
  OpenRequest,
  Producer,
  type ProducerOptions,
  type RequestOptions,
  type Submitted,
  split,
} from '@piecework/producer';
export type {
  AbortError,
  Backoff,
  Client,
  ClosedError,
  CompletionAbout,
  CompletionMade,
  Condition,
  ConditionError,
  ConnectionError,
  CrashCause,
  Credential,
  CredentialsProvider,
  DroppedError,
  DurabilityError,
  EndedError,
  EndReason,
  ExpiredError,
  HeldError,
  HistoryPoint,
  IndeterminateError,
  InvalidOptionError,

  type IoredisClient,
  type Jsonify,
  JsonText,
  jsonText,
  type KeptError,
  type KeptIdFailure,
  type LongestRun,
  LostError,
  NotCompleteError,
  NotFoundError,
  PayloadError,
  PieceworkError,
  type QueueCounts,
  type QueueError,
  type RedisInput,
  type RegisteredWorker,
  RequestExistsError,
  RequestFailedError,
  type RequestOutcome,
  ResultsDiscardedError,
  ResultsLostError,
  type RunAbout,
  type RunEnd,
  type RunSpan,
  type Runs,
  type RunsAbout,
  SealedError,
  ServerError,
  type SharedConnection,
  SourceError,
  type SubmissionAbout,
  type SubmissionMade,
  type Telemetry,
  TimeoutError,
  type Timing,
  type ToleratedFailures,
  type TraceContext,
  UnrecoverableError,
  type WaitOptions,
} from '@piecework/protocol';

export * from '@piecework/queues';
export {
  type AttemptEnd,
  type BackoffFunction,
  type Handler,
  type HandlerContext,
  type MeasuredWorker,
  type Meter,
  type Metrics,
  type SettledEvent,
  type Settlement,
  type StartOptions,
  type SubRequest,
  type SubRequestsOptions,
  type TaskHandler,
  type TaskMeter,
  Worker,
  type WorkerEvents,
  type WorkerHealth,
  type WorkerOptions,
  type WorkerState,
} from '@piecework/worker';
export {
  type HandleOptions,
  type OpenHandle,
  Piecework,
  type PieceworkOptions,
  type SubmitOptions,
} from './api/piecework.js';
export { RequestHandle } from './api/request-handle.js';
export { SubmittedRequest } from './api/submitted-request.js';
export { defineTask, type Task } from './api/task.js';
export type {
  DelayedTasksOptions,
  TaskArguments,
  TaskFunction,
  TaskInput,
  TaskOptions,
  TaskWorkerOptions,
} from './delayed/delayed-task-options.js';
export { DelayedTasks } from './delayed/delayed-tasks.js';
export { TaskWorker } from './delayed/task-worker.js';
export {
  Admin,
  type AdminOptions,
  type HistoryOptions,
} from './operate/admin.js';
export type { DoctorOptions } from './operate/doctor/doctor-options.js';
export type { Check, Finding } from './operate/doctor/finding.js';
export type { Users } from './operate/doctor/servers/acl.js';
export type { Role } from './operate/doctor/servers/roles.js';
export type {
  ListOptions,
  PauseQueueOptions,
  RunningOptions,
  UpdateOptions,
} from './operate/options.js';
export type {
  AttemptFailedEvent,
  GapEvent,
  QueueEvent,
  QueueEventsOptions,
  QueueProgressEvent,
  RequestCompletedEvent,
} from './operate/queue-events/queue-event.js';
export type { Redriven, RedriveOptions } from './operate/redrive.js';
export type { Cancelled } from './operate/request-control.js';
export type { RunningSubRequest } from './operate/running.js';
export {
  type Health,
  type HealthServer,
  type MetricsPage,
  serveHealth,
} from './processes/health-server.js';
export type { PageServer } from './processes/page-server.js';
