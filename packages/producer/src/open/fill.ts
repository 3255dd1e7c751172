import { onAbort, PieceworkError, SealedError, SourceError } from '@piecework/protocol';
import type { CheckedOptions } from '../create/options.js';
import { type Source, SourceFailure } from '../items/source.js';
import type { OpenRequest } from './open-request.js';

/**
 * Appends the items of a source, whose first item was read already, to a new request and seals it. If that
 * fails, `onSourceError` decides what becomes of the request.
 */
export async function fill(
  request: OpenRequest,
  first: string | undefined,
  source: Source,
  { onSourceError, signal }: CheckedOptions,
): Promise<void> {
  const stop = signal && onAbort(signal, () => request.abort(signal.reason));
  try {
    let payload = first;
    while (payload !== undefined) {
      // No await for items that are available at once: it would cost a turn of the microtask queue for each.
      const room = request.appendEncoded(payload);
      if (room) await room;
      const next = source.next();
      payload = next instanceof Promise ? await next : next;
    }
    await request.flush();
    await request.seal();
  } catch (error) {
    // Submitted again with the same id, it continues where it is.
    if (error instanceof PieceworkError && error.retryable) throw error;
    // Another call ended it: perhaps the same submission, with all items in.
    if (error instanceof SealedError) throw error;
    if (onSourceError === 'cancel') await request.cancel().catch(() => {});
    // What was read before the source failed is kept.
    else if (!signal?.aborted) await request.flush().catch(() => {});
    throw error instanceof SourceFailure
      ? new SourceError(request.id, onSourceError, error.cause)
      : error;
  } finally {
    stop?.();
    request.leave();
  }
}
