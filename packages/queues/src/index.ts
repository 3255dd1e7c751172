/** `@piecework/queues`: what is built of the same scripts, clock and connections beside requests. */

export type { ConsumeOptions } from './consume.js';
export { LostError } from './errors.js';
export { IdQueue, type IdQueueCounts } from './id-queue.js';
export { NoQueueError, QueueDiffersError } from './id-queue-errors.js';
export type { IdQueueOptions } from './id-queue-options.js';
export type { IdReference, NoReference, TaskReference } from './id-reference.js';
export { Meters } from './meters.js';
export type {
  MeteredRate,
  MetersOptions,
  MetersReading,
  MetricsServer,
} from './meters-options.js';
export type { Moment, TaskOptions, TimedOptions } from './options.js';
export {
  type DiscardedTask,
  type PutOptions,
  RetryQueue,
  type RetryQueueOptions,
} from './retry-queue.js';
export type { Delay, RetryTask } from './retry-task.js';
export {
  type Due,
  type DueOptions,
  Scheduler,
  type SchedulerOptions,
  type TakeDueOptions,
} from './scheduler.js';
