import type { Fault, Taken } from '../history.js';
import type { Act } from '../plan.js';
import type { TakenTally } from './taken.js';

/** What may be found wrong. */
export const KINDS = [
  /** Acknowledged, and no result; settled without a run; or the whole request was not found. */
  'lost',
  /** A run or a result of an item that nobody added, or a value that is not its item. */
  'unexpected',
  /** Two results of one sub-request in one reading. */
  'counted twice',
  /** Counts that do not add up, or are not those of the results. */
  'miscounted',
  /** Two waiters were told two things of one life of a request. */
  'completed twice',
  'never completed',
  /** Who awaited what was lost heard that it had completed. */
  'told as completed',
  /** Of the other queues: two had one key at once, by the server's clock. */
  'in two hands',
  /** The same: taken again after its end had counted. */
  'came back',
  /** More in flight than the limit, zombies and doubtful ones not counted. */
  'cap exceeded',
  'key left',
  /** A process that nobody killed wrote half a line. */
  'torn journal',
  /** The run says too little to be judged: not drained, keys not looked for, results not read. */
  'cut short',
] as const;
export type Kind = (typeof KINDS)[number];

export interface Finding {
  readonly count: number;
  /** The first of them, in words. */
  readonly examples: readonly string[];
}

/** What a run, or several together, showed. All are sums, but for what is called `most`. */
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
    /** How often a waiter was told of a completion. */
    readonly told: number;
    readonly dropped: number;
    /** Completed lives, by generation: the first of its id, or a later one. */
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
    /** Starts beyond the first of a sub-request, by what became of the run before. */
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
