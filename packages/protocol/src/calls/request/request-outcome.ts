import type { Reply } from '../../scripts/run-script.js';

/** How a request ended. 'failed': more sub-requests failed than were tolerated. */
export type RequestOutcome = 'succeeded' | 'failed' | 'cancelled';
/**
 * Why a request ended before its work was done. 'producer-lost': it was not sealed, and its producers gave no sign of
 * life for `producerLeaseMs`.
 */
export type EndReason = 'deadline' | 'failures' | 'cancel' | 'producer-lost';
const UNFINISHED: ReadonlySet<string | undefined> = new Set(['open', 'sealed', 'cancelling']);

/** Whether a request of this status has not ended: it is neither complete nor a tombstone, nor missing. */
export const hasNotEnded = (status: string | undefined): boolean => UNFINISHED.has(status);

export type Gone = { readonly verdict: 'gone' };
/** `spentAt`: for `finish`: when the keys of the request are to be unlinked, in server time, if they are large. */
export type Complete = Extract<Reply<'cancel'>, { readonly verdict: 'complete' }>;
