import { type AllIn, BEHIND_CREATE, type Patiently, tellOpen, tellOver } from '@piecework/protocol';
import { CHUNK_BYTES, CHUNK_ITEMS } from './appender.js';
import type { KnownItems } from './known-items.js';
import { confirmed, type Site, tellEnd } from './seal-in.js';

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
 * Tells the queue side of a request that is all in: its tokens, or that it is over. Answers whether that is
 * certain now (`epoch`: of the connection before it was brought up): it has the request open, or the request is over. @throws IndeterminateError
 */
export async function announce(
  { queue, request, patience }: Site,
  epoch: number,
  generation: number,
  { outcome, told, ...tokens }: AllIn,
): Promise<boolean> {
  const { id } = request.keys;
  const patiently: Patiently = (call) => patience.call(call);
  if (outcome) {
    const over = { generation, outcome };
    await tellEnd(() => tellOver(epoch, queue, request, over, patiently));
    return true;
  }
  if (told && tokens.mint === 0) return true;
  const push = () => queue.push({ id, generation, ...tokens });
  const answer = await confirmed(id, () => tellOpen(queue, request, generation, push, patiently));
  return answer === 'done';
}
