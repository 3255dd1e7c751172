import {
  backoff,
  ClosedError,
  ignoreRejection,
  LONGEST_DELAY_MS,
  type OptionTable,
  option,
  PieceworkError,
  pause,
  shape,
} from '@piecework/protocol';
import type { TakeOptions } from './options.js';
import type { RetryItem } from './retry-item.js';

export interface ConsumeOptions extends TakeOptions {
  /** An item is discarded with this failure. 1 to 1000000. @default 10 */
  readonly maxFailures?: number | undefined;
  /** Time until the next attempt, in ms, after so many failures. @default 1 s, then doubled, at most an hour */
  readonly retryDelayMs?: ((numFailures: number) => number) | undefined;
}

const FIRST_MS = 1_000;
const HOUR_MS = 3_600_000;
const doubling = (numFailures: number) => Math.min(HOUR_MS, FIRST_MS * 2 ** (numFailures - 1));

export const consumeOptions: OptionTable = {
  maxFailures: option.integer(1, 1_000_000, 10),
  retryDelayMs: option.custom(shape.callable, 'a function of the number of failures', doubling),
};

/** Runs a handler for one item, and settles the item by the outcome. */
export async function handle<T>(
  item: RetryItem<T>,
  handler: (payload: T, item: RetryItem<T>) => unknown,
  { maxFailures, retryDelayMs }: Required<Pick<ConsumeOptions, 'maxFailures' | 'retryDelayMs'>>,
): Promise<void> {
  let settle = () => item.done();
  try {
    await handler(item.payload, item);
  } catch (error) {
    const numFailures = item.numFailures + 1;
    if (numFailures >= maxFailures) {
      settle = () => item.discard(error ?? String(error));
    } else {
      const delayMs = await orPutBack(item, () => delayOf(retryDelayMs(numFailures)));
      settle = () => item.retry({ delayMs });
    }
  }
  await insist(settle, item.signal);
}

/**
 * The time that `timeOf` computes. If it throws, the item is put back with the default delay: otherwise its lease would
 * be renewed for ever.
 * @throws what `timeOf` throws
 */
async function orPutBack<T>(item: RetryItem<T>, timeOf: () => number): Promise<number> {
  try {
    return timeOf();
  } catch (error) {
    const delayMs = doubling(item.numFailures + 1);
    await insist(() => item.retry({ delayMs }), item.signal);
    throw error;
  }
}

/** Repeats until the item is settled or lost: the lease of an unsettled item would be renewed for ever. */
async function insist(settle: () => Promise<boolean>, lost: AbortSignal): Promise<void> {
  const waits = backoff(50, 5_000);
  for (;;) {
    try {
      await settle();
      return;
    } catch (error) {
      if (lost.aborted || error instanceof ClosedError) return;
      if (!(error instanceof PieceworkError) || !error.retryable) throw error;
      await pause(waits.next(), lost);
    }
  }
}

/** The delay that a user's function returned. If it is not a number, the default after a first failure. */
function delayOf(ms: unknown): number {
  if (typeof ms === 'number' && !Number.isNaN(ms))
    return Math.round(Math.min(LONGEST_DELAY_MS, Math.max(0, ms)));
  ignoreRejection(ms);
  return FIRST_MS;
}
