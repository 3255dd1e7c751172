import type { RequestLook } from './request-look.js';

/*
 * Whether the books of a request can be true (I1). Four of its six numbers follow from the others and
 * would always add up, so what they are made from is compared: the counters of the state, what the
 * group has delivered, what is parked, what the stream still holds, the permits of each worker.
 */

const LIVING = new Set(['open', 'sealed', 'cancelling']);

export const isLiving = ({ fields }: RequestLook): boolean => LIVING.has(fields['status'] ?? '');

/** What nobody has read, and what of the returned work is ready. */
export function readyOf(look: RequestLook): number {
  return unreadOf(look) + look.dueNow;
}

function settledOf({ fields }: RequestLook): number {
  const number = (field: string) => Number(fields[field] ?? 0);
  return number('succeeded') + number('failed') + number('cancelled');
}

function unreadOf(look: RequestLook): number {
  return Number(look.fields['total'] ?? 0) - settledOf(look) - look.pending;
}

/** What is wrong with the books of a living request; undefined: nothing. */
export function wrongBooks(look: RequestLook): string | undefined {
  const { fields, pending, returned, entries, due } = look;
  const total = Number(fields['total']);
  const settled = settledOf(look);
  const sum = `total ${total}, settled ${settled}, delivered ${pending}`;
  if (unreadOf(look) < 0) return `more is settled and delivered than there is (${sum})`;
  if (entries < total - settled)
    return `its stream holds ${entries} of ${total - settled} unsettled sub-requests`;
  if (due > pending) return `more is parked (${due}) than was delivered (${pending})`;
  if (due !== returned) return `${due} are parked, but ${returned} are held as such`;
  const permits = Object.entries(fields).filter(([field]) => field.startsWith('permits:'));
  const held = permits.reduce((all, [, permit]) => all + Number(permit), 0);
  const granted = Number(fields['granted'] ?? 0);
  if (held !== granted) return `${granted} permits are granted, but workers hold ${held}`;
  return undefined;
}
