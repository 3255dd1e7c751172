import { AbortError, TimeoutError } from './errors.js';
import type { WaitOptions } from './options.js';

/** Resolves after `ms`, or at once (without an error) when `signal` aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/**
 * Runs `work` with a signal that aborts when the caller's does or when the time is over, and turns
 * that into the typed error. The promise settles then, whether or not `work` listens.
 * @throws AbortError · TimeoutError
 */
export async function waitFor<T>(
  what: string,
  { signal, timeoutMs }: WaitOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (signal?.aborted) throw new AbortError(what, signal.reason);
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let onAbort = () => {};
  const cancelled = new Promise<never>((_, reject) => {
    onAbort = () => reject(new AbortError(what, signal?.reason));
    signal?.addEventListener('abort', onAbort, { once: true });
    if (timeoutMs !== undefined) {
      timer = setTimeout(() => reject(new TimeoutError(what, timeoutMs)), timeoutMs);
    }
  });
  try {
    return await Promise.race([work(controller.signal), cancelled]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    controller.abort();
  }
}

/** A wait that doubles from `firstMs` to `maxMs`, each time with ±25 % of jitter. */
export function backoff(firstMs: number, maxMs: number): { next: () => number; reset: () => void } {
  let ms = firstMs;
  return {
    next: () => {
      const now = ms;
      ms = Math.min(maxMs, ms * 2);
      return now * (0.75 + Math.random() / 2);
    },
    reset: () => {
      ms = firstMs;
    },
  };
}
