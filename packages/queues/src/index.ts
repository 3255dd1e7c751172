/** `@piecework/queues`: what is built of the same scripts, clock and connections beside requests. */

export { IdQueue, type IdQueueCounts } from './ids/id-queue.js';
export { NoQueueError, QueueDiffersError } from './ids/id-queue-errors.js';
export type { IdQueueOptions } from './ids/id-queue-options.js';
export {
  type IdQueueLook,
  type IdQueueLookOptions,
  IdQueueView,
  type IdQueueViewOptions,
} from './ids/id-queue-view.js';
export type { IdReference, ItemReference, NoReference } from './ids/id-reference.js';
export type { Meters } from './metrics/meters.js';
export type {
  MeteredKind,
  MeteredRate,
  MetersOptions,
  MetersReading,
  MetricsServer,
} from './metrics/meters-options.js';
export type { ConsumeOptions } from './timed/consume.js';
export { LeaseLostError } from './timed/errors.js';
export type { Moment, TakeOptions, TimedOptions } from './timed/options.js';
export type { Delay, RetryItem } from './timed/retry-item.js';
export {
  type DiscardedItem,
  type DiscardedOptions,
  type PutOptions,
  RetryQueue,
  type RetryQueueOptions,
} from './timed/retry-queue.js';
export {
  type DueItem,
  type DueOptions,
  Scheduler,
  type SchedulerOptions,
  type TakeDueOptions,
} from './timed/scheduler.js';
