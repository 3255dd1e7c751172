import { setTimeout as sleep } from 'node:timers/promises';

export interface UntilOptions {
  /** Default 15,000. */
  timeoutMs?: number;
  /** Pause between two looks. Default 10. */
  everyMs?: number;
  /** What is waited for, for the error message. Default: the source of the condition. */
  what?: string;
}

/** What one look counts at most: a machine that stands still for long is not to leave only one or two of them. */
const MOST_MS = 1_000;

/** What a condition says when the time has not come. */
type NotYet = false | undefined | null | 0 | '';

/**
 * Waits until the condition holds, and returns what it returned.
 * A condition that throws does not hold yet; its last error becomes the cause.
 * @throws Error naming what was waited for, for how long, and the last answer
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, NotYet>> {
  const { timeoutMs = 15_000, everyMs = 10, what = String(condition) } = options;
  let waitedMs = 0;
  let last: { answer: unknown } | { error: unknown };
  do {
    const began = performance.now();
    try {
      const answer = await condition();
      if (answer) return answer as Exclude<T, NotYet>;
      last = { answer };
    } catch (error) {
      last = { error };
    }
    await sleep(everyMs);
    waitedMs += Math.min(performance.now() - began, MOST_MS);
  } while (waitedMs < timeoutMs);

  const outcome = 'error' in last ? `last error: ${last.error}` : `last answer: ${last.answer}`;
  const message = `waited ${timeoutMs} ms in vain until ${what} (${outcome})`;
  throw 'error' in last ? new Error(message, { cause: last.error }) : new Error(message);
}
