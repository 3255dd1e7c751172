export * from '@piecework/notifier';
export {
  type Dedupe,
  type Items,
  OpenRequest,
  Producer,
  type ProducerOptions,
  type RequestOptions,
  split,
} from '@piecework/producer';
export {
  AbortError,
  ClosedError,
  ConnectionError,
  DroppedError,
  DurabilityError,
  ExpiredError,
  IndeterminateError,
  InvalidOptionError,
  NotFoundError,
  PayloadError,
  PieceworkError,
  type QueueCounts,
  type RedisInput,
  type RegisteredWorker,
  RequestExistsError,
  RequestFailedError,
  SealedError,
  ServerError,
  SourceError,
  TimeoutError,
  UnrecoverableError,
  type WaitOptions,
} from '@piecework/protocol';
export {
  type Handler,
  type HandlerContext,
  type SettledEvent,
  type TaskHandler,
  Worker,
  type WorkerEvents,
  type WorkerHealth,
  type WorkerOptions,
  type WorkerState,
} from '@piecework/worker';
export { Admin, type AdminOptions, type ListOptions } from './admin.js';
export { type FleetHealth, WorkerFleet, type WorkerFleetOptions } from './fleet.js';
export { type Health, type HealthServer, serveHealth } from './health-server.js';
export {
  type OpenHandle,
  Piecework,
  type PieceworkOptions,
  type SubmitOptions,
} from './piecework.js';
export { RequestHandle } from './request-handle.js';
export { defineTask, type Task } from './task.js';
