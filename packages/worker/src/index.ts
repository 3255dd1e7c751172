export type { Handler, HandlerContext, Settlement, TaskHandler } from './handler/handler.js';
export type { BackoffFunction } from './handler/retry-policy.js';
export { type StartOptions, type WorkerOptions, workerOptions } from './options.js';
export type { SubRequest } from './pull/sub-request.js';
export { type SubRequestsOptions, subRequestsOptions } from './pull/sub-requests.js';
export type { SettledEvent, WorkerEvents } from './report/events.js';
export type { WorkerHealth, WorkerState } from './report/health.js';
export { SlotPool } from './shared/slots.js';
export { type SharedSlots, SharingWorker, Worker } from './worker.js';
