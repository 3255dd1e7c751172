import type { EndReason, QueueConditions, RequestOutcome } from '@piecework/protocol';
import type { Counts } from '../waiting/outcome.js';

/*
 * What the sentence on a request is made of (`standstill.ts` reads it, `why.ts` makes the sentence), and what comes of
 * it.
 */

/** Why a request is not further. */
export interface Why {
  /** The cause, and a second sentence with what to do if there is anything. Begins in small letters; no last full stop. */
  readonly why: string;
  readonly waitingFor: WaitingFor | undefined;
}

/** What a request waits for; see `RequestStatus`. */
export type WaitingFor =
  | ('resume' | 'queue' | 'worker' | 'task' | 'time' | 'lease' | 'producer')
  | ('handler' | 'memory' | 'retry' | 'slots');

/** A worker that has sub-requests of a request and has missed the renewal of its lease. It may have ended. */
export interface SilentWorker {
  /** Boot id, `<host>-<pid>-…`. */
  readonly worker: string;
  /** How many sub-requests it has. */
  readonly inFlight: number;
  /** When it last renewed its lease. */
  readonly seenAt: number;
  /** When its lease ends: then other workers take these sub-requests over. */
  readonly leaseEndsAt: number;
}

/** The producers of an open request. */
export interface ProducerSigns {
  /** When one of them last added items or renewed their lease. */
  readonly seenAt: number;
  /** When the lease ends if they stay silent. */
  readonly leaseEndsAt: number;
  /** What becomes of the request then: its `onProducerLost`. */
  readonly ifLost: 'cancel' | 'seal';
}

/** The sub-requests that wait for their next attempt, where nothing else is left. */
export interface RetrySigns {
  /** When the first of them may run again. */
  readonly dueAt: number;
  /** The last failed attempt of the request that its workers reported; undefined: none of the queue's last ones. */
  readonly lastError:
    | { readonly index: number; readonly name: string; readonly message: string }
    | undefined;
}

/** What the sentence is made of. Times are the Redis server's, in ms since 1970. */
export interface Snapshot {
  readonly id: string;
  readonly status: string;
  readonly outcome: RequestOutcome | undefined;
  readonly endReason: EndReason | undefined;
  readonly counts: Counts;
  readonly running: number;
  readonly readAt: number;
  readonly priority: number;
  readonly limit: number | null;
  readonly task: string | undefined;
  readonly heldUntil: number | undefined;
  readonly deadline: number | undefined;
  readonly silentWorkers: readonly SilentWorker[];
  readonly producer: ProducerSigns | undefined;
  readonly retry: RetrySigns | undefined;
  /** Since when it is held; 'created': its start is delayed; undefined: not known. */
  readonly heldSince: number | 'created' | undefined;
  /** Whether workers hold it back as its results lack room. */
  readonly heldForMemory: boolean;
  readonly paused: boolean;
  /** Whether a worker that does not serve its task has met it. */
  readonly parked: boolean;
  readonly keepsResults: boolean;
  /** As it is stored: '3', or '5%'. */
  readonly toleratedFailures: string;
  /** Workers with sub-requests of it, and when each last renewed its lease. */
  readonly holders: readonly { readonly worker: string; readonly renewedAt: number }[];
  /** Of its queue; of a request that has ended it may be empty. */
  readonly queue: QueueConditions;
  /** Other requests with running handlers, and their priorities. */
  readonly others: readonly { readonly id: string; readonly priority: number }[];
}
