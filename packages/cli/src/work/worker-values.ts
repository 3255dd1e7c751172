import type { LogFormat } from '../terminal/log-format.js';
import type { WorkValues } from './check-work.js';

/** The values of the flags of `worker`. */
export interface WorkerValues extends WorkValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  processes: number | 'auto';
  maxRestarts: number;
  leaseMs: number;
  maxBlockMs: number;
  drainMs: number;
  logLevel: string;
  logFormat?: LogFormat;
  healthPort?: number;
  healthHost: string;
  metricsPort?: number;
  metricsHost?: string;
}
