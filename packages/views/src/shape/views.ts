import type { Generation, RequestCost, SubmittedOptions, WaitingFor } from 'piecework';

/**
 * What the page receives: each view as one JSON value. The page imports these types; nothing else of the server.
 */

/** What the page needs to know before it shows anything. */
export interface Shell {
  readonly queues: readonly string[];
  /** Who looks, as `authorize` named them. */
  readonly visitor: string;
  /** Whether this visitor may change things. */
  readonly control: boolean;
  /** Whether payloads and results may be shown, behind a click. */
  readonly payloads: boolean;
  /** Whether there are queues beside requests to show. */
  readonly beside: boolean;
}

/** They add up to `total`. */
export interface RowCounts {
  /** Waits for a slot, also at a worker that read it ahead. */
  readonly ready: number;
  /** Has the right to run, which the limit bounds: its handler runs, or has ended and is about to be settled. */
  readonly running: number;
  readonly delayed: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly total: number;
}

/** One request in a list. */
export interface Row {
  readonly id: string;
  readonly task: string;
  readonly status: string;
  readonly outcome: string;
  readonly endReason: string;
  readonly waitingFor: WaitingFor | '';
  /** Why it is not further, or why it ended so. */
  readonly why: string;
  /** How many of those that are ready a worker has read ahead. */
  readonly ahead: number;
  readonly generation: number;
  readonly priority: number;
  readonly limit: number | null;
  readonly createdAt: number;
  readonly completedAt: number;
  readonly heldUntil: number;
  readonly deadline: number;
  readonly counts: RowCounts;
  /** Sub-requests settled per second, smoothed. */
  readonly rate: number;
  /** Time left at this rate, in ms; null: unknown. */
  readonly etaMs: number | null;
  /** As JSON, cut. */
  readonly metadata: string;
}

export interface Verdict {
  readonly level: 'ok' | 'warning' | 'error';
  readonly what: string;
  readonly cure: string;
  /** The request that `what` names, and where in it the id begins. */
  readonly request?: { readonly id: string; readonly from: number };
}

/** A point of a chart. */
export interface Point {
  readonly at: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly retried: number;
  /** Of a queue: busy slots. Of a request: running sub-requests, and `slots` is its limit; null: it has none. */
  readonly running: number;
  readonly slots: number | null;
}

/** The points of a chart, beside its view: at first all of them, then those that are new or have changed. */
export interface ChartView {
  /** 'hour': written by the workers, in intervals; 'here': collected while the dashboard was open. */
  readonly from: 'hour' | 'here';
  readonly intervalMs: number;
  /** Points before this time are over. */
  readonly begins: number;
  /** Whether these are all points. */
  readonly whole: boolean;
  readonly points: readonly Point[];
}

export interface BacklogBar {
  readonly priority: number;
  readonly ready: number;
  readonly delayed: number;
  readonly running: number;
  readonly requests: number;
}

export interface ErrorGroup {
  readonly name: string;
  readonly task: string;
  readonly count: number;
  readonly message: string;
  readonly lastAt: number;
  readonly requestId: string;
}

export interface OverviewView {
  readonly at: number;
  readonly verdicts: readonly Verdict[];
  readonly open: number;
  readonly parked: number;
  readonly ended: {
    readonly succeeded: number;
    readonly failed: number;
    readonly cancelled: number;
  };
  readonly pausedUntil: number | null;
  readonly workers: {
    readonly alive: number;
    readonly silent: number;
    readonly draining: number;
    readonly slots: number;
    /** Slots in which a handler ran at the last report of their worker. */
    readonly busy: number;
    readonly stuck: number;
  };
  readonly rate: number;
  /** By the books of the requests, as in `backlog` and in the rows. `workers.busy` is what the workers report. */
  readonly running: number;
  /** When the next request that is held back is due; null: none is. */
  readonly nextDue: number | null;
  readonly backlog: readonly BacklogBar[];
  readonly ready: number;
  /** How many of those that are ready cannot start, and for what reasons, in words. */
  readonly blocked: { readonly count: number; readonly reasons: readonly string[] };
  readonly delayed: number;
  readonly oldest: { readonly id: string; readonly createdAt: number; readonly why: string } | null;
  readonly errors: readonly ErrorGroup[];
  /** How many errors `errors` counts: the last ones. */
  readonly errorsRead: number;
  readonly busiest: readonly Row[];
  readonly checks: {
    readonly at: number;
    readonly findings: readonly Verdict[];
    readonly busy: boolean;
  } | null;
  readonly index: IndexState;
}

/** How far the list of requests is read. */
export interface IndexState {
  readonly rows: number;
  /** Whether every request has been read at least once. */
  readonly complete: boolean;
  /** Whether there are more requests than the dashboard keeps. */
  readonly truncated: boolean;
  /** How old the oldest row may be, in ms. */
  readonly ageMs: number;
}

export interface RequestsView {
  readonly at: number;
  readonly rows: readonly Row[];
  /** How many match, of how many. */
  readonly matches: number;
  readonly page: number;
  readonly pages: number;
  readonly states: Readonly<Record<string, number>>;
  readonly index: IndexState;
}

export interface RunningRow {
  readonly index: number;
  readonly worker: string;
  readonly forMs: number;
  readonly attempt: number;
  readonly progress: number | null;
}

export interface FailureGroupView {
  readonly name: string;
  readonly count: number;
  readonly index: number;
  readonly message: string;
}

export interface RequestView {
  readonly at: number;
  readonly row: Row;
  readonly cost: RequestCost;
  readonly options: SubmittedOptions;
  /** The oldest first; the last is the current one. */
  readonly generations: readonly Generation[];
  readonly running: readonly RunningRow[];
  readonly failures: readonly FailureGroupView[];
  /** How many failures were read; there may be more. */
  readonly failuresRead: number;
  /** Slots of the workers that take work. */
  readonly slots: number;
}

export interface WorkerView {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly state: 'silent' | 'stuck' | 'unwell' | 'overdue' | 'drains' | 'works' | 'idle';
  /** Why it is not well, in words. */
  readonly why: readonly string[];
  readonly concurrency: number;
  readonly running: number;
  readonly leftovers: number;
  /** How many other workers share its process. */
  readonly mates: number;
  /** Names of its tasks; null: all. */
  readonly tasks: readonly string[] | null;
  readonly startedAt: number;
  readonly seenAt: number;
  /** Those that are overdue first. */
  readonly longest: readonly {
    readonly isOverdue: boolean;
    readonly requestId: string;
    readonly index: number;
    readonly attempt: number;
    readonly startedAt: number;
    readonly medianMs: number | null;
  }[];
  readonly eventLoopDelayMs: number | null;
  readonly rssBytes: number | null;
}

export interface WorkersView {
  readonly at: number;
  readonly workers: readonly WorkerView[];
  readonly total: number;
  readonly states: Readonly<Record<string, number>>;
  /** Slots of those that are alive and take work, how many were busy at their last report, and how many are stuck. */
  readonly fleet: { readonly slots: number; readonly busy: number; readonly stuck: number };
}

export interface ErrorRow {
  readonly at: number;
  readonly name: string;
  readonly message: string;
  readonly requestId: string;
  readonly task: string;
  readonly index: number;
  readonly attempt: number;
  readonly worker: string;
}

export interface ErrorsView {
  readonly at: number;
  readonly errors: readonly ErrorRow[];
}

export interface BesideQueue {
  readonly kind: 'retry queue' | 'scheduler' | 'id queue';
  readonly name: string;
  /** In the order in which they are shown. */
  readonly counts: readonly { readonly label: string; readonly n: number }[];
  /** What `next` is. */
  readonly nextIs: string;
  readonly next: number | null;
  readonly failures: readonly {
    readonly key: string;
    readonly at: number;
    readonly message: string;
  }[];
  /** Why it cannot be read; '' if it can. */
  readonly problem: string;
}

export interface BesideView {
  readonly at: number;
  readonly queues: readonly BesideQueue[];
}

/** A value of a user: what may be shown of it. */
export interface ValueView {
  readonly hidden: boolean;
  /** JSON, cut; '' when it is hidden. */
  readonly text: string;
  /** As 'object with 3 fields, 210 bytes'. */
  readonly about: string;
  readonly cut: boolean;
}

export interface FailureDetail {
  readonly index: number;
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly attempts: number;
  readonly crashes: number;
  readonly worker: string;
  readonly payload: ValueView;
}

export interface ResultRow {
  readonly index: number;
  readonly status: 'succeeded' | 'failed';
  readonly value: ValueView;
  readonly durationMs: number | null;
  readonly worker: string;
}

export interface ResultsPage {
  readonly rows: readonly ResultRow[];
  /** Where the next page begins; '': there is none yet. */
  readonly cursor: string;
}

/** An answer that is an error. */
export interface Refusal {
  readonly error: { readonly code: string; readonly message: string };
}
