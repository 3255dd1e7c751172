export * from '@piecework/notifier';
export {
  type Dedupe,
  type ItemCheck,
  type Items,
  OpenRequest,
  Producer,
  type ProducerOptions,
  type RequestOptions,
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
  ExpiredError,
  HeldError,
  IndeterminateError,
  InvalidOptionError,
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
export { Admin, type AdminOptions, type ListOptions, type PauseQueueOptions } from './admin.js';
export type {
  DelayedTasksOptions,
  TaskFunction,
  TaskOptions,
  TaskWorkerOptions,
} from './delayed-task-options.js';
export { DelayedTasks } from './delayed-tasks.js';
export type { Users } from './doctor/acl.js';
export type { DoctorOptions } from './doctor/doctor.js';
export type { Check, Finding } from './doctor/finding.js';
export { type Health, type HealthServer, serveHealth } from './health-server.js';
export {
  type OpenHandle,
  Piecework,
  type PieceworkOptions,
  type SubmitOptions,
} from './piecework.js';
export type { Redriven, RedriveOptions } from './redrive.js';
export type { Cancelled, UpdateOptions } from './request-control.js';
export { RequestHandle } from './request-handle.js';
export type { RunningOptions, RunningSubRequest } from './running.js';
export { SubmittedRequest } from './submitted-request.js';
export { defineTask, type Task } from './task.js';
export { TaskWorker } from './task-worker.js';
