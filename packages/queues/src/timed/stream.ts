import type { TakenItem } from './taken-item.js';
import type { StreamParts, TimedSet } from './timed-set.js';

/**
 * The items of a consumer, as a stream. If the stream ends by its signal, or by an error of its own, the leases of the
 * items that were handed out are renewed until these are settled, or the queue is closed. If the reader leaves it by
 * `break` or an error, they are not renewed: perhaps no consumer works on the items, and they become due again when their
 * leases end.
 */
export async function* streamOf<Given>(
  set: TimedSet,
  parts: StreamParts,
  handOut: (item: TakenItem) => Given,
): AsyncGenerator<Given, void, undefined> {
  const consumer = set.consumer(parts);
  // While an item is yielded, it is the reader who leaves the stream.
  let isYielded = false;
  try {
    await set.reach();
    for (;;) {
      const item = await consumer.next();
      if (!item) return;
      isYielded = true;
      yield handOut(item);
      isYielded = false;
    }
  } finally {
    await consumer.close({ keepsRenewing: !isYielded });
  }
}
