import type { Act } from './plan.js';

/*
 * The journals of an attack. Each process writes one of its own, with one line of JSON for each entry. It writes a
 * line, synchronously, before the step that the line announces, and another when the outcome is known. So a kill loses
 * nothing: a step that was announced and has no outcome may or may not have happened.
 *
 * Time is the monotonic clock of the machine (`process.hrtime.bigint()`), which all processes share.
 */

export interface Entry {
  /** Nanoseconds on the machine's monotonic clock, as a decimal string. */
  readonly ns: string;
  /** The process that wrote it, such as 'worker-3'. Names are unique in an attack. */
  readonly process: string;
  readonly event: Event;
}

export type Event =
  | ProducerEvent
  | ControlEvent
  | WorkerEvent
  | WaiterEvent
  | FaultEvent
  | ServerEvent
  | TakerEvent
  | ObserverEvent;

/**
 * A producer. Items of a request are numbered from 0; the payload of an item contains its number. `sinceNs`: when the
 * call was sent whose reply confirms the write; if left out, when the step was announced.
 */
export type ProducerEvent =
  /** About to create the request. */
  | {
      readonly does: 'open';
      readonly request: string;
      readonly limit: number;
      /** The request is given up if its producer shows no sign of life for this time. */
      readonly leaseMs?: number;
      /** Time from its creation until its unfinished items are cancelled. */
      readonly deadlineMs?: number;
    }
  /** About to add the items `from` (included) to `to` (excluded). */
  | {
      readonly does: 'append';
      readonly request: string;
      readonly from: number;
      readonly to: number;
    }
  /** They are acknowledged. */
  | {
      readonly did: 'append';
      readonly request: string;
      readonly from: number;
      readonly to: number;
      readonly sinceNs?: string;
    }
  /** About to seal it at `total` items. */
  | { readonly does: 'seal'; readonly request: string; readonly total: number }
  /** The seal is acknowledged. */
  | {
      readonly did: 'seal';
      readonly request: string;
      readonly generation: number;
      readonly total: number;
      readonly sinceNs?: string;
    }
  /** About to drop it. */
  | { readonly does: 'drop'; readonly request: string }
  | { readonly did: 'drop'; readonly request: string }
  /** A call was refused, or its outcome is unknown; the caller repeats it with the same id. */
  | {
      readonly failed: 'open' | 'append' | 'seal' | 'drop';
      readonly request: string;
      readonly code: string;
      readonly message: string;
    };

/**
 * A process that controls a running request: pauses it, changes its limit, and so on. The steps of a request are
 * numbered from 0 and taken one after the other. The successor of a killed process repeats its step.
 */
export type ControlEvent =
  | {
      readonly does: 'control';
      readonly request: string;
      readonly step: number;
      readonly act: Act;
      /** The limit from here on; 0 while it is paused. */
      readonly limit: number;
    }
  /** It is acknowledged. */
  | { readonly did: 'control'; readonly request: string; readonly step: number; readonly act: Act }
  /** It was refused, or its outcome is unknown. A refusal because the request has ended is no error. */
  | {
      readonly failed: 'control';
      readonly request: string;
      readonly step: number;
      readonly act: Act;
      readonly code: string;
      readonly message: string;
    };

export type WorkerEvent =
  /** It waits for work. `boot` is its name in the registry. */
  | { readonly did: 'start'; readonly boot: string; readonly leaseMs: number }
  /** A handler begins. */
  | {
      readonly does: 'run';
      readonly request: string;
      readonly index: number;
      readonly attempt: number;
      readonly crashes: number;
      /** The item number that the payload names; it equals the index, or something is wrong. */
      readonly item: number;
    }
  /** The signal of a handler aborted, whether the handler listens or not: its worker gave up the lease. */
  | { readonly did: 'abort'; readonly request: string; readonly index: number }
  /** A handler ends; 'aborted': because its signal was aborted. */
  | {
      readonly did: 'run';
      readonly request: string;
      readonly index: number;
      /** 'held': it called `holdRequest`; the sub-request comes again. */
      readonly ended: 'succeeded' | 'failed' | 'aborted' | 'held';
    }
  /**
   * The server has acknowledged to this worker the outcome of a run that ended at `endedNs`. Only for requests whose
   * limit changes.
   */
  | {
      readonly did: 'settle';
      readonly request: string;
      readonly index: number;
      readonly endedNs: string;
    }
  /** Its event loop was blocked for this time until now: the process was frozen, or the machine was busy. */
  | { readonly did: 'stand still'; readonly forMs: number };

/** A process that awaits a completion and reads the results. */
export type WaiterEvent =
  /** `after`: completions of earlier generations must not be reported; if left out, any may. */
  | { readonly does: 'await'; readonly request: string; readonly after?: number }
  | {
      readonly did: 'await';
      readonly request: string;
      readonly generation: number;
      readonly status: 'succeeded' | 'failed' | 'cancelled';
      readonly counts: Readonly<Record<string, number>>;
      /** Whether notices could reach this process: false where they are swallowed on purpose. */
      readonly notices: boolean;
      /**
       * Time since the completion, in ms by the server's clock; since the beginning of the wait if that was later.
       */
      readonly latencyMs: number;
      /** When it heard of the completion. It has read the status since, perhaps across a failover. */
      readonly heardNs?: string;
    }
  /** Results of a completed request, read after the completion of `generation`; `item`: the number that came back. */
  | {
      readonly did: 'read';
      readonly request: string;
      readonly generation: number;
      /** How the request had ended, as the reader was told with the last result. */
      readonly outcome: {
        readonly generation: number;
        readonly status: 'succeeded' | 'failed' | 'cancelled';
        readonly counts: Readonly<Record<string, number>>;
      };
      readonly results: readonly {
        readonly index: number;
        readonly status: 'succeeded' | 'failed';
        readonly item: number | null;
      }[];
      /** Whether these are the last ones. */
      readonly over: boolean;
    }
  /** It was refused. What is retryable is asked again; of the rest, 'NOT_FOUND' and 'LOST' are a lost request. */
  | {
      readonly failed: 'await' | 'read';
      readonly request: string;
      readonly code: string;
      readonly message: string;
    };

/** A fault. One that lasts has an end. `target` is a process, a proxy or the server. */
export type FaultEvent =
  | { readonly does: 'fault'; readonly fault: Fault; readonly target: string }
  | { readonly did: 'fault'; readonly fault: Fault; readonly target: string };

export type Fault =
  | 'kill worker'
  | 'kill producer'
  | 'kill waiter'
  | 'kill taker'
  /** SIGSTOP for longer than the lease, then SIGCONT. */
  | 'freeze worker'
  | 'cut connections'
  | 'delay'
  | 'black hole'
  | 'kill redis'
  | 'restart redis'
  /** The server is stopped for about a lease ('stop redis': killed, and restarted after that time). */
  | 'freeze redis'
  | 'stop redis'
  /** The server loses the writes that it acknowledged last: see 'lose writes'. */
  | 'promote replica'
  | 'restore snapshot'
  /** See 'step clock' of the server. */
  | 'wrong clock'
  | 'forget scripts'
  | 'fill memory'
  | 'swallow notices'
  /** A replica takes over by a planned failover. */
  | 'fail over'
  /** A master of a cluster; a replica takes over, and it comes back as one. */
  | 'kill master'
  /** All keys of a hash slot, step by step, to another master. */
  | 'move queue slot'
  | 'move request slot';

/** An event of the server that the judge needs to know which acknowledged writes may be lost. */
export type ServerEvent =
  /**
   * It lost its last writes. It still has those that were acknowledged before `sureNs`, and it has those that were
   * requested after `goneNs`.
   */
  | { readonly did: 'lose writes'; readonly sureNs: string; readonly goneNs: string }
  /** From now on its clock, and that of its successors, is this many ms ahead of the right time; below 0: behind. */
  | { readonly did: 'step clock'; readonly offsetMs: number };

/** The other queues: those beside requests of many sub-requests. */
export const TAKEN = ['delayed', 'ids', 'retry', 'scheduler'] as const;
export type Taken = (typeof TAKEN)[number];

/** A process that puts keys into such a queue and takes them. No key is put twice. */
export type TakerEvent =
  | { readonly does: 'put'; readonly queue: Taken; readonly key: string }
  | { readonly did: 'put'; readonly queue: Taken; readonly key: string; readonly sinceNs: string }
  /**
   * This process has taken the key, for `holdMs` from `atMs` on by the server's clock, unless it renews it. `atMs` is
   * left out where the queue does not report it.
   */
  | {
      readonly did: 'take';
      readonly queue: Taken;
      readonly key: string;
      readonly atMs?: number;
      readonly holdMs: number;
    }
  /** About to report that it is done, or should come again. */
  | { readonly does: 'end'; readonly queue: Taken; readonly key: string }
  /**
   * `counted`: whether this was the first report that counts. Of a delayed task: that the server has answered the
   * report.
   */
  | {
      readonly did: 'end';
      readonly queue: Taken;
      readonly key: string;
      readonly counted: boolean;
    }
  /** A call was refused, or its outcome is unknown. */
  | {
      readonly failed: 'put' | 'take' | 'end';
      readonly queue: Taken;
      readonly key?: string;
      readonly code: string;
      readonly message: string;
    };

export type ObserverEvent =
  /** Bytes that the server uses, and resident bytes of each running process, by its name. */
  | {
      readonly did: 'sample';
      readonly redis: number;
      readonly processes: Readonly<Record<string, number>>;
      /** What was settled so far, over all requests. */
      readonly settled: number;
    }
  /** The state of a request on the server after its completion, before it is dropped. */
  | {
      readonly did: 'inspect';
      readonly request: string;
      readonly generation: number;
      readonly counts: Readonly<Record<string, number>>;
    }
  /** Keys that are left although every request was dropped; tombstones with a TTL are not among them. */
  | { readonly did: 'look for keys'; readonly left: readonly string[] }
  /** The faults are over; the remaining work is being finished. */
  | { readonly does: 'drain'; readonly open: number }
  | { readonly did: 'drain' };
