import type { Holding } from './holding.js';
import type { StreamParts, TimedSet } from './timed-set.js';

/**
 * What a consumer takes, as a stream. Ended by its signal, or by an error of its own, what was handed out is still
 * renewed until it is settled (or the close); left by `break` or an error, it is not: nobody may be at
 * work on it, and it comes back with the end of its lease.
 */
export async function* streamOf<Given>(
  set: TimedSet,
  parts: StreamParts,
  give: (holding: Holding) => Given,
): AsyncGenerator<Given, void, undefined> {
  const consumer = set.consumer(parts);
  // Whether the reader has one in hand, and so is who leaves if anybody does.
  let forgotten = false;
  try {
    await set.reach();
    for (;;) {
      const holding = await consumer.next();
      if (!holding) return;
      forgotten = true;
      yield give(holding);
      forgotten = false;
    }
  } finally {
    await consumer.end({ forgotten });
  }
}
