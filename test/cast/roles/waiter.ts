import type { Notifier } from '@piecework/notifier';
import type { Picture } from '../../support/peek.js';

/** What a waiter received of the end of a request. */
export interface Notice {
  readonly id: string;
  readonly status?: string;
  readonly endReason?: string | undefined;
  readonly counts?: object;
  readonly error?: Error;
}

/** Awaits the completion of a request. An error is a notice as well. */
export async function awaitEnd(notifier: Notifier, id: string): Promise<Notice> {
  try {
    const { status, counts, endReason } = await notifier.completion(id);
    return { id, status, counts, endReason };
  } catch (error) {
    return { id, error: error as Error };
  }
}

/** Says what of a notice is not so; empty when all is. */
export function wrongNotice({ status, counts, endReason, error }: Notice, picture: Picture) {
  if (error) return [`a waiter received ${error}`];
  const { total, succeeded, failed, cancelled } = picture.counts;
  const wanted = { total, succeeded, failed, cancelled };
  const same = Object.entries(wanted).every(
    ([name, n]) => (counts as { [name: string]: number })[name] === n,
  );
  return same && status === picture.outcome && endReason === picture.fields['endReason']
    ? []
    : [`a waiter received ${status}, ${endReason}, ${JSON.stringify(counts)}`];
}
