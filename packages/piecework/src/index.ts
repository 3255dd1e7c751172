export * from '@piecework/notifier';
export {
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
  ExpiredError,
  InvalidOptionError,
  NotFoundError,
  PayloadError,
  PieceworkError,
  type RedisInput,
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
  type TaskHandler,
  Worker,
  type WorkerOptions,
} from '@piecework/worker';
export { Admin } from './admin.js';
export { WorkerFleet, type WorkerFleetOptions } from './fleet.js';
export {
  type OpenHandle,
  Piecework,
  type PieceworkOptions,
  type SubmitOptions,
} from './piecework.js';
export { RequestHandle } from './request-handle.js';
export { defineTask, type Task } from './task.js';
