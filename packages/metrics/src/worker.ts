/** `@piecework/metrics/worker`: what a worker process loads, without a client of Redis. */
export type { Snapshot } from './definitions/snapshot.js';
export { WorkerMetrics, type WorkerMetricsOptions } from './workers/worker-metrics.js';
