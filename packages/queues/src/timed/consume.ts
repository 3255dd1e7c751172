import {
  backoff,
  ClosedError,
  ignoreRejection,
  LONGEST_DELAY_MS,
  type OptionTable,
  option,
  PieceworkError,
  pause,
} from '@piecework/protocol';
import { z } from 'zod';
import type { TakeOptions } from './options.js';
import type { RetryTask } from './retry-task.js';

export interface ConsumeOptions extends TakeOptions {
  /** With which failure a task is discarded. 1 to 1000000. @default 10 */
  readonly maxFailures?: number | undefined;
  /** After how many ms a task comes again that has failed so often. @default 1 s, doubling, an hour at most */
  readonly retryDelayMs?: ((numFailures: number) => number) | undefined;
}

const FIRST_MS = 1_000;
const HOUR_MS = 3_600_000;
const doubling = (numFailures: number) => Math.min(HOUR_MS, FIRST_MS * 2 ** (numFailures - 1));

export const consumeOptions: OptionTable = {
  maxFailures: option.integer(1, 1_000_000, 10),
  retryDelayMs: option.custom(
    z.custom((value) => typeof value === 'function'),
    'a function of the number of failures',
    doubling,
  ),
};

/** Runs a handler for one task and settles it by what comes of it. */
export async function handle<T>(
  task: RetryTask<T>,
  handler: (payload: T, task: RetryTask<T>) => unknown,
  { maxFailures, retryDelayMs }: Required<Pick<ConsumeOptions, 'maxFailures' | 'retryDelayMs'>>,
): Promise<void> {
  let settle = () => task.done();
  try {
    await handler(task.payload, task);
  } catch (error) {
    const numFailures = task.numFailures + 1;
    if (numFailures >= maxFailures) {
      settle = () => task.discard(error ?? String(error));
    } else {
      const delayMs = await orPutBack(task, () => delayOf(retryDelayMs(numFailures)));
      settle = () => task.retry({ delayMs });
    }
  }
  await insist(settle, task.signal);
}

/** Without a time it comes again by the default: nobody else would let go of it. @throws what `timeOf` throws */
async function orPutBack<T>(task: RetryTask<T>, timeOf: () => number): Promise<number> {
  try {
    return timeOf();
  } catch (error) {
    const delayMs = doubling(task.numFailures + 1);
    await insist(() => task.retry({ delayMs }), task.signal);
    throw error;
  }
}

/** Settles, for as long as the task is ours: one that nobody settles would be renewed for ever. */
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

/** What a function of the user computed; what is no number is the default of the first. */
function delayOf(ms: unknown): number {
  if (typeof ms === 'number' && !Number.isNaN(ms))
    return Math.round(Math.min(LONGEST_DELAY_MS, Math.max(0, ms)));
  ignoreRejection(ms);
  return FIRST_MS;
}
