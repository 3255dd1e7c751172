export type { BackoffFunction } from './attempt-terms.js';
export type { SettledEvent, WorkerEvents } from './events.js';
export type { Handler, HandlerContext, TaskHandler } from './handler.js';
export type { WorkerHealth, WorkerState } from './health.js';
export { type WorkerOptions, workerOptions } from './options.js';
export { Worker } from './worker.js';
