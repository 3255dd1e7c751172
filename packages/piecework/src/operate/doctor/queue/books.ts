import { hasNotEnded } from '@piecework/protocol';
import type { RequestSnapshot } from './request-snapshot.js';

/*
 * Checks whether the books of a request can be right (I1). Four of its six counts are computed from the others and
 * always add up. So what they are computed from is compared: the counters of the state, what the group has
 * delivered, what was returned and waits, what the stream still has, the permits of each worker.
 */

export const isUnfinished = ({ fields }: RequestSnapshot): boolean => hasNotEnded(fields['status']);

/** How many sub-requests are ready: unread ones, and returned ones that are due. */
export function readyOf(snapshot: RequestSnapshot): number {
  return unreadOf(snapshot) + snapshot.dueNow;
}

function settledOf({ fields }: RequestSnapshot): number {
  const number = (field: string) => Number(fields[field] ?? 0);
  return number('succeeded') + number('failed') + number('cancelled');
}

function unreadOf(snapshot: RequestSnapshot): number {
  return Number(snapshot.fields['total'] ?? 0) - settledOf(snapshot) - snapshot.pending;
}

/** What is wrong with the books of an unfinished request; undefined: nothing. */
export function wrongBooks(snapshot: RequestSnapshot): string | undefined {
  const { fields, pending, unread, returned, entries, due } = snapshot;
  const total = Number(fields['total']);
  const settled = settledOf(snapshot);
  const sum = `total ${total}, settled ${settled}, delivered ${pending}`;
  if (unreadOf(snapshot) < 0) return `more is settled and delivered than exists (${sum})`;
  if (entries < total - settled)
    return `its stream has ${entries} of ${total - settled} unsettled sub-requests`;
  const gone = unread === undefined ? 0 : unreadOf(snapshot) - unread;
  if (gone > 0) return `${gone} of its sub-requests are neither settled nor waiting (${sum})`;
  if (due > pending) return `more is due again (${due}) than was delivered (${pending})`;
  if (due !== returned) return `${due} are due again, but ${returned} were returned`;
  const permits = Object.entries(fields).filter(([field]) => field.startsWith('permits:'));
  const counted = permits.reduce((all, [, permit]) => all + Number(permit), 0);
  const granted = Number(fields['granted'] ?? 0);
  if (counted !== granted) return `${granted} permits are granted, but workers have ${counted}`;
  return undefined;
}
