import type { WorkerOptions } from 'piecework';
import type { Sent } from '../sent-commands.js';

/** What a worker process of the figures is told. */
export interface WorkerOrder {
  readonly kind?: 'piecework' | 'bullmq';
  readonly redis: string | { nodes: { host: string; port: number }[] };
  readonly queue: string;
  /** Workers in the process. @default 1 */
  readonly workers?: number;
  readonly concurrency: number;
  readonly options?: Pick<WorkerOptions, 'leaseMs' | 'quantumMs' | 'maxBlockMs'>;
  /** Notes every run; without it only their number is known. */
  readonly notes?: boolean;
  /** Tells the parent of every start at once. */
  readonly tells?: boolean;
  /** Measures a round trip so often, on a connection of its own. */
  readonly pingEveryMs?: number;
}

/** One run of a handler, by the clock that all processes share. */
export interface Run {
  readonly requestId: string;
  readonly n: number;
  readonly startMs: number;
  readonly endMs: number;
}

/** What happened since the last report. */
export interface WorkerReport {
  readonly handled: number;
  readonly runs: readonly Run[];
  readonly pingsMs: readonly number[];
  readonly sent: Sent;
  readonly cpuMicros: number;
  /** When the last run's outcome went out, if it was noted. */
  readonly lastSettleMs: number | undefined;
}

export type ToWorker = 'report' | 'close';
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'report'; readonly report: WorkerReport }
  | { readonly kind: 'started'; readonly n: number; readonly atMs: number };
