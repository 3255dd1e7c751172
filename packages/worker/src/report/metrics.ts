import type { EventEmitter } from 'node:events';
import type { WorkerEvents } from './events.js';
import type { WorkerHealth } from './health.js';
import type { Meter } from './meter.js';

/** A worker, as what measures it knows it. */
export interface MeasuredWorker extends Pick<EventEmitter<WorkerEvents>, 'on'> {
  readonly id: string;
  health(): WorkerHealth;
}

/** Receives what workers measure. `WorkerMetrics` of `@piecework/metrics` is one. */
export interface Metrics {
  /** Called once for each worker, when it is constructed. */
  watch(worker: MeasuredWorker): Meter;
}
