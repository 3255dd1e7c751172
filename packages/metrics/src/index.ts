export type { Definition } from './definitions/definition.js';
export type { Snapshot } from './definitions/snapshot.js';
export { sources } from './definitions/sources.js';
export { FleetMetrics } from './fleet/fleet-metrics.js';
export {
  QueueMetrics,
  type QueueMetricsOptions,
  type Scale,
  type ScaleQuestion,
} from './queues/queue-metrics.js';
export { queuePages, scaleAnswer } from './queues/queue-pages.js';
export type { ReadQueue } from './queues/queue-reader.js';
export { WorkerMetrics, type WorkerMetricsOptions } from './workers/worker-metrics.js';
