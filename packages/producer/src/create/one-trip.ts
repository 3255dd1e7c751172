import {
  BEHIND_CREATE,
  finishOnQueue,
  type Patiently,
  type PipelineReply,
  reopenIfClosed,
} from '@piecework/protocol';
import { CHUNK_ITEMS, WHOLE_BYTES } from '../items/chunk-size.js';
import type { KnownItems } from '../items/known-items.js';
import { confirmed, type Site, tryOrLeaveToTick } from '../seal/seal-request.js';

/*
 * A submission whose items are known beforehand and fit into one call is submitted in one call (`submit`) where one
 * server has both sides. Elsewhere it is created, filled and sealed in one round trip, after its intent. Whether a
 * submission is small depends on its items and options alone: so a repetition numbers its items in the same way, whether
 * or not it takes one trip.
 */

/** The items, encoded, when they are few enough. An empty request would gain nothing. */
export function smallOf(known: KnownItems, window: number): readonly string[] | undefined {
  if (known.length === 0 || known.length > CHUNK_ITEMS) return undefined;
  // As for the chunks of a long submission: several have to fit into the window.
  if (window > 0 && known.length * 4 > window) return undefined;
  return known.within(WHOLE_BYTES);
}

/** The number that the producer gives to the first item of a submission. */
export const firstNumber = (small: readonly string[] | undefined): number =>
  small ? BEHIND_CREATE : 0;

/**
 * Notifies the queue side of a request that was created with all its items: of its tokens, or that it has ended.
 * @param epoch of the connection before the request was created
 * @returns whether it is certain that the queue side has the request open, or that the request has ended
 * @throws IndeterminateError
 */
export async function announce(
  { queue, request, patience }: Site,
  epoch: number,
  generation: number,
  { outcome, ...tokens }: PipelineReply,
): Promise<boolean> {
  const { id } = request.keys;
  const patiently: Patiently = (call) => patience.call(call);
  if (outcome) {
    const over = { generation, outcome };
    await tryOrLeaveToTick(() => finishOnQueue(epoch, queue, request, over, patiently));
    return true;
  }
  const push = () => queue.push({ id, generation, ...tokens });
  const answer = await confirmed(id, () =>
    reopenIfClosed(queue, request, generation, push, patiently),
  );
  return answer === 'done';
}
