import type { Reply } from '../../scripts/run-script.js';

/** How a request ended. 'failed': more sub-requests failed than were tolerated. */
export type RequestOutcome = 'succeeded' | 'failed' | 'cancelled';
/**
 * Why a request ended before its work was done. 'producer-lost': it was not sealed, and its producers gave no sign of
 * life for `producerLeaseMs`.
 */
export type EndReason = 'deadline' | 'failures' | 'cancel' | 'producer-lost';
export type Gone = { readonly verdict: 'gone' };
/** `spentAt`: for `finish`: when the keys of the request are to be unlinked, in server time, if they are large. */
export type Complete = Extract<Reply<'cancel'>, { readonly verdict: 'complete' }>;
