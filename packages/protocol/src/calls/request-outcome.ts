import type { Reply } from '../scripts/run-script.js';

export type RequestOutcome = Complete['outcome'];
/**
 * Why a request ended before its work was done. 'producer-lost': nobody sealed it, and its producers gave
 * no sign of life for `producerLeaseMs`.
 */
export type EndReason = 'deadline' | 'failures' | 'cancel' | 'producer-lost';
export type Gone = { readonly verdict: 'gone' };
/** `spentAt`: for `finish`, server time at which what it keeps is to be unlinked, if that is much. */
export type Complete = Extract<Reply<'cancel'>, { readonly verdict: 'complete' }>;
