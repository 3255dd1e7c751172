import { type Minted, type Patiently, reopenIfClosed } from '@piecework/protocol';
import { CHUNK_ITEMS, WHOLE_BYTES } from '../items/chunk-size.js';
import type { KnownItems } from '../items/known-items.js';
import { confirmed, type Site } from '../seal/seal-request.js';

/*
 * A submission whose items are known beforehand and fit into one call is submitted in one call (`submit`) where one
 * server has both sides. Elsewhere `create` gets all items, after the intent and before the push.
 */

/** The items, encoded, when they are few enough. An empty request would gain nothing. */
export function smallOf(known: KnownItems, window: number): readonly string[] | undefined {
  if (known.length === 0 || known.length > CHUNK_ITEMS) return undefined;
  // As for the chunks of a long submission: several have to fit into the window.
  if (window > 0 && known.length * 4 > window) return undefined;
  return known.within(WHOLE_BYTES);
}

/** What the queue side has to learn of a request that was created with all its items. */
export interface Announcement extends Omit<Minted, 'id' | 'generation'> {
  /** When the request has to be tended, by the server's clock, if that is earlier than the intent has scheduled. */
  readonly tendAt: number | undefined;
}

/**
 * Pushes the token of a request that was created with all its items, and schedules its first tend.
 * @returns whether it is certain that the queue side has the request open
 * @throws IndeterminateError
 */
export function announce(
  { queue, request, patience }: Site,
  generation: number,
  { tendAt, ...minted }: Announcement,
): Promise<boolean> {
  const { id } = request.keys;
  const patiently: Patiently = (call) => patience.call(call);
  const tell = (call: () => ReturnType<typeof queue.push>) =>
    reopenIfClosed(queue, request, generation, call, patiently);
  return confirmed(id, async () => {
    const pushed = await tell(() => queue.push({ id, generation, ...minted }));
    if (tendAt !== undefined) await tell(() => queue.scheduleTend(id, generation, tendAt));
    return pushed === 'done';
  });
}
