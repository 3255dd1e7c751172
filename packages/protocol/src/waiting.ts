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
