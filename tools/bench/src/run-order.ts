import type { ContenderName } from './contenders/index.js';
import type { RedisFigures } from './redis-figures.js';

/** What the process of one run is told. */
export interface RunOrder {
  readonly kind: 'speed' | 'memory' | 'profile';
  readonly contender: ContenderName;
  readonly pieceworkRoot: string;
  readonly host: string;
  readonly port: number;
  readonly count: number;
  readonly warmUpCount: number;
  readonly payloadBytes: number;
  readonly concurrency: number;
  /** Of Piecework's request. Default: the concurrency. */
  readonly limit?: number;
  readonly budgetMs: number;
}

export interface SpeedReport {
  readonly kind: 'speed';
  /** False: the budget ended first; the figures are of what was finished until then. */
  readonly inTime: boolean;
  readonly finished: number;
  readonly elapsedMs: number;
  /** Producer and worker together, user and system. */
  readonly clientCpuMicros: number;
  /** Commands that the client sent, without those that scripts call. */
  readonly sent: number;
  /** Writes to sockets that they went out in: round trips, at most. */
  readonly writes: number;
  readonly redis: RedisFigures;
}

export interface MemoryReport {
  readonly kind: 'memory';
  /** All that was submitted, with no worker. */
  readonly waitingBytes: number;
}

/** First all is submitted, only then the worker starts: what each half costs by itself. */
export interface ProfileReport {
  readonly kind: 'profile';
  readonly submitting: Cost;
  /** Working off and reading the results. */
  readonly working: Cost;
  readonly cpuProfile: CpuProfile;
}

export interface Cost {
  readonly clientCpuMicros: number;
  readonly redis: RedisFigures;
}

/** The part that we read of what V8's profiler gives: which function ran at each sample. */
export interface CpuProfile {
  readonly nodes: { id: number; callFrame: { functionName: string; url: string } }[];
  readonly samples?: number[];
  readonly timeDeltas?: number[];
}

/** What it answers. */
export type RunReport = SpeedReport | MemoryReport | ProfileReport;
