import {
  type AllIn,
  BEHIND_CREATE,
  type Patience,
  PieceworkError,
  type QueueCommands,
} from '@piecework/protocol';
import { CHUNK_BYTES, CHUNK_ITEMS } from './appender.js';
import type { KnownItems } from './known-items.js';

/*
 * A submission whose items are known before and fit into one chunk is created, filled and sealed in one
 * round trip, behind its intent. Whether it is small follows from its content and options, so that a
 * repetition numbers its items in the same way, whichever way it takes.
 */

/** Its items, encoded, when they are few enough; an empty request has nothing to gain. */
export function smallOf(known: KnownItems, window: number): readonly string[] | undefined {
  if (known.length === 0 || known.length > CHUNK_ITEMS) return undefined;
  // As for the chunks of a long one: several have to fit into the window.
  if (window > 0 && known.length * 4 > window) return undefined;
  const payloads = [...known];
  const units = payloads.reduce((sum, { length }) => sum + length, 0);
  return units <= CHUNK_BYTES ? payloads : undefined;
}

/** The number of the first item of a submission, by the count of its producer. */
export const firstNumber = (small: readonly string[] | undefined): number =>
  small ? BEHIND_CREATE : 0;

/**
 * What the queue side is told of a request that is all in: its tokens, or that it is over. It is in
 * whatever becomes of this call; what the queue side does not learn here, a tick tells it.
 */
export async function announce(
  queue: QueueCommands,
  request: { id: string; generation: number },
  { outcome, ...tokens }: AllIn,
  patience: Patience,
): Promise<void> {
  const { id, generation } = request;
  try {
    if (outcome) await patience.call(() => queue.finish(id, generation, outcome));
    else if (tokens.mint > 0) await patience.call(() => queue.push({ id, generation, ...tokens }));
  } catch (error) {
    if (!(error instanceof PieceworkError && error.retryable)) throw error;
  }
}
