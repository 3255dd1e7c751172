import { onAbort, PieceworkError, SealedError, SourceError } from '@piecework/protocol';
import type { OpenRequest } from './open-request.js';
import type { CheckedOptions } from './options.js';
import { type Source, SourceFailure } from './source.js';

/**
 * Feeds a source, whose first item was read already, into a new request and seals it; or ends that as
 * the options say.
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
      // No turn of the microtask queue for each item of a source that has them at hand.
      const room = request.appendEncoded(payload);
      if (room) await room;
      const next = source.next();
      payload = next instanceof Promise ? await next : next;
    }
    await request.flush();
    await request.seal();
  } catch (error) {
    // Asked again with the same id, it goes on where it is.
    if (error instanceof PieceworkError && error.retryable) throw error;
    // Somebody else ended it: perhaps the same submission, which is all in.
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
