export type { BackoffFunction } from './attempt-terms.js';
export type { SettledEvent, WorkerEvents } from './events.js';
export type { Handler, HandlerContext, TaskHandler, Told } from './handler.js';
export type { WorkerHealth, WorkerState } from './health.js';
export { type StartOptions, type WorkerOptions, workerOptions } from './options.js';
export { SlotPool } from './slots.js';
export type { SubRequest } from './sub-request.js';
export { type SubRequestsOptions, subRequestsOptions } from './sub-requests.js';
export { type Company, Worker } from './worker.js';
