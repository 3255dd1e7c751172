import type { RequestStatus } from '@piecework/notifier';

/** Why a request ended before its end, in words. */
export const WHY_ENDED: Readonly<Record<NonNullable<RequestStatus['endReason']>, string>> = {
  deadline: 'early: its deadline passed',
  failures: 'early: too many sub-requests failed',
  cancel: 'early: somebody cancelled it',
  'producer-lost': 'early: its producer was lost before all items were in',
};
