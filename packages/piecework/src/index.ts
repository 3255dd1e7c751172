export * from '@piecework/notifier';
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
export {
  AbortError,
  type Backoff,
  ClosedError,
  type Condition,
  ConditionError,
  ConnectionError,
  DroppedError,
  DurabilityError,
  EndedError,
  type EndReason,
  ExpiredError,
  HeldError,
  IndeterminateError,
  InvalidOptionError,
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
  SealedError,
  ServerError,
  SourceError,
  TimeoutError,
  type Timing,
  type ToleratedFailures,
  UnrecoverableError,
  type WaitOptions,
} from '@piecework/protocol';
export * from '@piecework/queues';
export {
  type BackoffFunction,
  type Handler,
  type HandlerContext,
  type SettledEvent,
  type StartOptions,
  type SubRequest,
  type SubRequestsOptions,
  type TaskHandler,
  type Told,
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
  TaskFunction,
  TaskOptions,
  TaskWorkerOptions,
} from './delayed/delayed-task-options.js';
export { DelayedTasks } from './delayed/delayed-tasks.js';
export { TaskWorker } from './delayed/task-worker.js';
export {
  Admin,
  type AdminOptions,
  type ListOptions,
  type PauseQueueOptions,
} from './operate/admin.js';
export type { Users } from './operate/doctor/acl.js';
export type { DoctorOptions } from './operate/doctor/doctor.js';
export type { Check, Finding } from './operate/doctor/finding.js';
export type { Redriven, RedriveOptions } from './operate/redrive.js';
export type { Cancelled, UpdateOptions } from './operate/request-control.js';
export type { RunningOptions, RunningSubRequest } from './operate/running.js';
export { type Health, type HealthServer, serveHealth } from './processes/health-server.js';
