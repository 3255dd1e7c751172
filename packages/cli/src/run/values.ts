import type { RequestOptions } from '@piecework/producer';
import { LARGEST_VALUE_BYTES } from '@piecework/protocol/contract';
import type { InputValues } from '../input/input-values.js';
import type { ResultFormat } from '../output/result-format.js';
import type { LogFormat } from '../terminal/log-format.js';
import type { WorkValues } from '../work/check-work.js';

/** The values of the flags of `run`. */
export interface RunValues extends RequestOptions, InputValues, WorkValues {
  redis?: string;
  queue: string;
  /** Whether no `--queue` was given: then only the workers of this run serve the queue. */
  hasOwnQueue: boolean;
  shards: number;
  json: boolean;
  dryRun: boolean;
  out?: string;
  format?: ResultFormat;
  outDir?: string;
  joblog?: string;
  badRows?: string;
  timing: boolean;
  resume: boolean;
  retryFailed: boolean;
  jobs?: number;
  processes: number;
  concurrency: number;
  maxRestarts: number;
  retentionMs: number;
  drainMs: number;
  logLevel: string;
  logFormat?: LogFormat;
  metricsPort?: number;
  metricsHost: string;
}

/** With `--batch`, a program gets an array as lines, unless `--exec-input` says otherwise. */
export function execInputOf({
  batch,
  exec,
  execInput,
  persistent,
}: Pick<RunValues, 'batch' | 'exec' | 'execInput' | 'persistent'>): Partial<WorkValues> {
  const asLines = batch !== undefined && exec !== undefined && !persistent;
  return asLines ? { execInput: execInput ?? 'lines' } : {};
}

/** Results that are discarded may have any size. Not on a shared queue, where the workers also serve other requests. */
export function discarding(values: RunValues): Partial<RunValues> {
  const { results, exec, execOutput, persistent, hasOwnQueue } = values;
  if (results !== 'discard' || !hasOwnQueue) return {};
  return exec !== undefined && !persistent && execOutput === 'text'
    ? { execOutput: 'none' }
    : { maxResultBytes: LARGEST_VALUE_BYTES };
}
