import type { ContenderName } from './contenders/index.js';
import type { RedisFigures } from './redis-figures.js';

/** The order to the process of one run. */
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
  /** Handlers return their payload instead of its number, and commands are not counted, which costs time per byte. */
  readonly echoes?: boolean;
}

export interface SpeedReport {
  readonly kind: 'speed';
  /** False if the time budget ended first; the figures then cover what was finished until that. */
  readonly inTime: boolean;
  readonly finished: number;
  readonly elapsedMs: number;
  /** Producer and worker together, user and system. */
  readonly clientCpuMicros: number;
  /** Commands that the client sent, without those that scripts call. */
  readonly sent: number;
  /** Number of socket writes that contained them: an upper bound of the round trips. */
  readonly writes: number;
  readonly redis: RedisFigures;
}

export interface MemoryReport {
  readonly kind: 'memory';
  /** Memory of everything that was submitted, without a worker. */
  readonly waitingBytes: number;
}

/** Costs of the two halves: first everything is submitted, then the worker starts. */
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

/** The part of V8's profile that is used: which function ran at each sample. */
export interface CpuProfile {
  readonly nodes: { id: number; callFrame: { functionName: string; url: string } }[];
  readonly samples?: number[];
  readonly timeDeltas?: number[];
}

/** The report of the process. */
export type RunReport = SpeedReport | MemoryReport | ProfileReport;
