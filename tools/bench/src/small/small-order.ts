import type { Sent } from '../sent-commands.js';
import type { Address, SmallContenderName } from './small-contender.js';

/** The order to a process of callers, of a worker, or of both. */
export interface SmallOrder {
  readonly contender: SmallContenderName;
  readonly redis: Address;
  readonly queue: string;
  readonly slots: number;
  /** Sub-requests of a request. */
  readonly size: number;
  /** Requests that are under way at the same time. */
  readonly atOnce: number;
  readonly count: number;
  readonly warmUpCount: number;
  readonly payloadBytes: number;
  /** Whether the process contains the worker, and whether it contains the callers. */
  readonly works: boolean;
  readonly calls: boolean;
  /** Counts the commands that it sends, which costs time. */
  readonly counts: boolean;
}

export interface SmallReport {
  readonly elapsedMs: number;
  /** From `submit` to all results, of each request. */
  readonly latenciesMs: readonly number[];
  readonly cpuMicros: number;
  readonly sent: Sent;
}

/** `begin` forgets what was before; `call` makes all requests; both are answered when done. */
export type SmallWord = 'begin' | 'call' | 'report';
