import FlatQueue from 'flatqueue';

/** A slot of a worker, for the schedule that loses no time. */
export interface PerfectSlot {
  /** When the worker began. */
  readonly fromMs: number;
  /** How much longer than nominal its handlers take. */
  readonly slowness: number;
}

/**
 * When the last sub-request ends if each slot that becomes free starts the next one at once (greedy list scheduling).
 */
export function perfectMakespanMs(
  handlersMs: Iterable<number>,
  slots: readonly PerfectSlot[],
): number {
  const free = new FlatQueue<PerfectSlot>();
  for (const slot of slots) free.push(slot, slot.fromMs);
  let lastEndMs = 0;
  for (const handlerMs of handlersMs) {
    const startMs = free.peekValue() ?? 0;
    const slot = free.pop();
    if (!slot) throw new Error('a schedule needs a slot');
    const endMs = startMs + handlerMs * slot.slowness;
    free.push(slot, endMs);
    lastEndMs = Math.max(lastEndMs, endMs);
  }
  return lastEndMs;
}
