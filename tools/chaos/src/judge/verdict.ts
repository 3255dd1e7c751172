import type { Fault, Taken } from '../contract/history.js';
import type { Act } from '../contract/plan.js';
import type { Finding, Kind } from '../evidence/findings.js';
import type { TakenTally } from '../evidence/taken.js';

/** The outcome of a run, or of several together. All figures are sums, except those called `most`. */
export interface Verdict {
  readonly runs: number;
  readonly clean: boolean;
  readonly findings: Readonly<Record<Kind, Finding>>;
  readonly journals: number;
  readonly entries: number;
  readonly faults: Readonly<Partial<Record<Fault, number>>>;
  /** Steps that were acknowledged, by what they did. */
  readonly acts: Readonly<Partial<Record<Act, number>>>;
  readonly requests: {
    readonly opened: number;
    readonly completed: number;
    /** How often a completion was reported to a waiter. */
    readonly told: number;
    readonly dropped: number;
    /** Completed generations: the first of each id, and later ones. */
    readonly generations: { readonly first: number; readonly later: number };
  };
  readonly items: {
    readonly attempted: number;
    readonly acknowledged: number;
    readonly settled: number;
    readonly succeeded: number;
    readonly failed: number;
    readonly cancelled: number;
    /** Results that came back, over all readings. */
    readonly read: number;
  };
  readonly executions: {
    readonly starts: number;
    readonly aborted: number;
    /** Sub-requests that ran more than once. */
    readonly again: number;
    /** Starts after the first of a sub-request, by how the run before it ended. */
    readonly repeats: Readonly<Record<Repeat, number>>;
  };
  readonly cap: Cap;
  /** Of each of the other queues; empty when nobody used them. */
  readonly taken: Readonly<Record<Taken, TakenTally>>;
  /** How often the server lost its last writes, acknowledgements that this puts in doubt, steps of its clock. */
  readonly upheavals: {
    readonly lost: number;
    readonly inDoubt: number;
    readonly steps: number;
  };
  readonly durations: {
    /** First entry to the begin of the drain. */
    readonly attackMs: number;
    readonly drainMs: number;
    readonly mostDrainMs: number;
    /** First run to the last completion. */
    readonly workMs: number;
  };
  /** Kept one by one, so that the percentiles of several runs are those of all. */
  readonly samples: {
    /** From the kill of a worker to the next start of each sub-request that it was running. */
    readonly recoveryMs: readonly number[];
    /** From a completion to the waiter, who was there before it. */
    readonly noticeMs: readonly number[];
    /** The same where notices were swallowed. */
    readonly withoutNoticeMs: readonly number[];
  };
}

/** What became of the run before: why a sub-request started again. */
export const REPEATS = [
  'after a failure',
  'after a redrive',
  'after a hold',
  'after a kill',
  'after a lost lease',
  'after lost writes',
  'after a step of the clock',
  'beside a zombie',
  'for other reasons',
] as const;
export type Repeat = (typeof REPEATS)[number];

export interface Cap {
  /** Most sub-requests over a limit at one instant, zombies and doubtful ones included. */
  readonly mostOver: number;
  /** Time over a limit, times how far over it. */
  readonly overSeconds: number;
  readonly zombieRuns: number;
  readonly zombieWorkers: number;
  /** Time of runs whose lease was over; of it, the time in which their process was not standing still. */
  readonly zombieSeconds: number;
  readonly zombieAwakeSeconds: number;
  /** Periods over a limit that are only so if doubtful runs still had their lease. */
  readonly doubtfulPeriods: number;
  readonly doubtfulSeconds: number;
}
