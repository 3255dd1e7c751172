import type { Address, SmallContenderName } from './small-contender.js';

/** How many attempts there were, and how many of them failed. */
export interface Attempts {
  readonly made: number;
  readonly failed: number;
}

/** The order to a process of callers, of workers, or of both. */
export interface SmallOrder {
  readonly contender: SmallContenderName;
  readonly redis: Address;
  readonly queue: string;
  readonly workers: number;
  /** Slots of each worker. */
  readonly slots: number;
  /** How long a handler waits; 0: it returns at once. */
  readonly handlerMs: number;
  /** Share of the sub-requests whose first attempt fails, in percent. */
  readonly failingPercent: number;
  /** Attempts of a sub-request, without backoff. 1: what fails has failed for good; 2: it succeeds at the second. */
  readonly attempts: 1 | 2;
  /** Sub-requests of a request. */
  readonly size: number;
  /** Requests that are under way at the same time. */
  readonly atOnce: number;
  readonly count: number;
  readonly warmUpCount: number;
  readonly payloadBytes: number;
  /** Whether the process contains the workers, and whether it contains the callers. */
  readonly works: boolean;
  readonly calls: boolean;
}

export interface SmallReport {
  readonly elapsedMs: number;
  /** From `submit` to all results, of each request. */
  readonly latenciesMs: readonly number[];
  readonly cpuMicros: number;
  /** Of the workers in this process. */
  readonly attempts: Attempts;
}

/** `begin` forgets what was before; `call` makes all requests; both are answered when done. */
export type SmallWord = 'begin' | 'call' | 'report';
