import type { Act } from './plan.js';

/*
 * What the processes of an attack write down, one line of JSON for each entry, each process into a
 * journal of its own. A line is written through (a synchronous write) before the step that it
 * announces, and again when its outcome is known, so that a kill loses nothing: what was announced
 * and has no outcome may or may not have happened.
 *
 * Time is the monotonic clock of the machine (`process.hrtime.bigint()`), which all processes share.
 */

/** The one who writes: 'worker-3', a name that no other process of the attack has. */
export interface Entry {
  /** Nanoseconds on the machine's monotonic clock, as a decimal string. */
  readonly ns: string;
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
 * A producer. Items of a request are numbered from 0; the payload of an item names its number. `sinceNs`: when
 * the call was sent whose reply says that it is in; left out: when its step was announced.
 */
export type ProducerEvent =
  /** About to bring the request into being. */
  | {
      readonly does: 'open';
      readonly request: string;
      readonly limit: number;
      /** For how long it is not given up without a sign of life of whoever adds to it. */
      readonly leaseMs?: number;
      /** From its creation: then what is left of it is cancelled. */
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
  /** About to drop it; all that follows is clearing up. */
  | { readonly does: 'drop'; readonly request: string }
  | { readonly did: 'drop'; readonly request: string }
  /** A call was refused, or its fate is unknown; whoever asked asks again with the same id. */
  | {
      readonly failed: 'open' | 'append' | 'seal' | 'drop';
      readonly request: string;
      readonly code: string;
      readonly message: string;
    };

/**
 * Whoever meddles with a request that goes on. Steps of a request are numbered from 0 and done one
 * after the other; who takes over from a killed process does its step once more.
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
  /** It was refused, or its fate is unknown. What is over cannot be meddled with: that is no fault. */
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
  /** The signal of a handler aborted, whether it listens or not: its worker gave the lease up. */
  | { readonly did: 'abort'; readonly request: string; readonly index: number }
  /** A handler ends; 'aborted': its signal told it to. */
  | {
      readonly did: 'run';
      readonly request: string;
      readonly index: number;
      /** 'held': it held its request back, and is to come again. */
      readonly ended: 'succeeded' | 'failed' | 'aborted' | 'held';
    }
  /**
   * The server has taken the outcome of a run that ended at `endedNs`, and this worker was told so; of
   * requests whose limit changes only.
   */
  | {
      readonly did: 'settle';
      readonly request: string;
      readonly index: number;
      readonly endedNs: string;
    }
  /** Its event loop stood still for so long until now: it was frozen, or the machine was busy. */
  | { readonly did: 'stand still'; readonly forMs: number };

/** Who awaits a completion and reads the results. */
export type WaiterEvent =
  /** `after`: no life before this one is to be told of; left out: any. */
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
       * From the server's time of completion until here, in ms by the server's clock; from the begin
       * of the wait if that was later.
       */
      readonly latencyMs: number;
    }
  /** Results of a completed request; `values` are the item numbers that came back, by index. */
  | {
      readonly did: 'read';
      readonly request: string;
      readonly generation: number;
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

/** Who does the damage. A fault that lasts has an end; `target` is a process, a proxy or the server. */
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
  /** The server stands still for about a lease; killed, and started again as late. */
  | 'freeze redis'
  | 'stop redis'
  /** What it acknowledged last is gone: see 'lose writes'. */
  | 'promote replica'
  | 'restore snapshot'
  /** See 'step clock' of the server. */
  | 'wrong clock'
  | 'forget scripts'
  | 'fill memory'
  | 'swallow notices'
  /** A replica takes over in good order. */
  | 'fail over'
  /** A master of a cluster; a replica takes over, and it comes back as one. */
  | 'kill master'
  /** All keys of a hash slot, step by step, to another master. */
  | 'move queue slot'
  | 'move request slot';

/** What became of the server, of interest to whoever judges what it had acknowledged. */
export type ServerEvent =
  /**
   * It lost its last writes. Those that were acknowledged before `sureNs` it still has; what was asked for
   * after `goneNs`, it has acknowledged since.
   */
  | { readonly did: 'lose writes'; readonly sureNs: string; readonly goneNs: string }
  /** Its clock, and that of its successors, is so many ms ahead of the right time; less than 0: behind. */
  | { readonly did: 'step clock'; readonly offsetMs: number };

/** The queues that are not requests of many sub-requests. */
export const TAKEN = ['delayed', 'ids', 'retry', 'scheduler'] as const;
export type Taken = (typeof TAKEN)[number];

/** Who puts keys into such a queue and takes them out. No key is put twice. */
export type TakerEvent =
  | { readonly does: 'put'; readonly queue: Taken; readonly key: string }
  | { readonly did: 'put'; readonly queue: Taken; readonly key: string; readonly sinceNs: string }
  /**
   * It is in this hand, for `holdMs` from `atMs` on by the server's clock, if nobody renews it. Left out: that
   * is not told.
   */
  | {
      readonly did: 'take';
      readonly queue: Taken;
      readonly key: string;
      readonly atMs?: number;
      readonly holdMs: number;
    }
  /** About to say that it is done, or is to come again. */
  | { readonly does: 'end'; readonly queue: Taken; readonly key: string }
  /** `counted`: as the first of all who said so. */
  | {
      readonly did: 'end';
      readonly queue: Taken;
      readonly key: string;
      readonly counted: boolean;
    }
  /** A call was refused, or its fate is unknown. */
  | {
      readonly failed: 'put' | 'take' | 'end';
      readonly queue: Taken;
      readonly key?: string;
      readonly code: string;
      readonly message: string;
    };

export type ObserverEvent =
  /** Bytes that the server uses, and resident bytes of each living process, by its name. */
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
  /** Keys that stay although every request was dropped; tombstones with a TTL are not among them. */
  | { readonly did: 'look for keys'; readonly left: readonly string[] }
  /** No fault any more; what is left to do is drained. */
  | { readonly does: 'drain'; readonly open: number }
  | { readonly did: 'drain' };
