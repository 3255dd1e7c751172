import { setTimeout as sleep } from 'node:timers/promises';

export interface UntilOptions {
  /** Default 15,000. One check counts for a second at most, however long it took. */
  timeoutMs?: number;
  /** Pause between two checks. Default: 10, and in a long wait a twentieth of it, up to 50: checks cost CPU time. */
  everyMs?: number;
  /** What is waited for, for the error message. Default: the source of the condition. */
  what?: string;
}

/** A check counts for so much at most: while this process, or one that it asks, stands still, nothing can happen. */
const LONGEST_CHECK_MS = 1_000;

const LONGEST_PAUSE_MS = 50;

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
  const { timeoutMs = 15_000, what = String(condition) } = options;
  let last: { answer: unknown } | { error: unknown };
  let waitedMs = 0;
  for (;;) {
    const beganMs = performance.now();
    try {
      const answer = await condition();
      if (answer) return answer as Exclude<T, NotYet>;
      last = { answer };
    } catch (error) {
      last = { error };
    }
    if (waitedMs >= timeoutMs) break;
    const everyMs = options.everyMs ?? Math.min(LONGEST_PAUSE_MS, Math.max(10, waitedMs / 20));
    await sleep(everyMs);
    waitedMs += Math.min(performance.now() - beganMs, LONGEST_CHECK_MS + everyMs);
  }

  const outcome = 'error' in last ? `last error: ${last.error}` : `last answer: ${last.answer}`;
  const message = `waited ${timeoutMs} ms in vain until ${what} (${outcome})`;
  throw 'error' in last ? new Error(message, { cause: last.error }) : new Error(message);
}
