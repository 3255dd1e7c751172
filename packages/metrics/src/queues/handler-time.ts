import type { HistoryPoint, RegisteredWorker } from 'piecework';

/** Where nothing is known of the handlers, in seconds. */
const ASSUMED = 1;
/** As many attempts are enough, and as many intervals in which something ran. */
const ATTEMPTS = 100;
const INTERVALS = 6;
const INTERVAL_SECONDS = 10;
/** A handler that takes less costs a slot about as much. */
const LEAST = 0.001;

/**
 * Mean time of a handler, in seconds, by the law of Little: handlers that run at once, divided by those that end in a
 * second. It needs no figure beyond the history of the queue. Where nothing has ended yet, handlers take at least as
 * long as those have run that run now.
 */
export function handlerSeconds(
  history: readonly HistoryPoint[],
  workers: readonly Pick<RegisteredWorker, 'longest'>[],
  now = Date.now(),
): number {
  let attempts = 0;
  let seconds = 0;
  let intervals = 0;
  // The last interval still grows.
  for (const { succeeded, failed, retried, inFlight } of history.slice(0, -1).reverse()) {
    const ended = succeeded + failed + retried;
    if (ended === 0 && inFlight === 0) continue;
    attempts += ended;
    seconds += inFlight * INTERVAL_SECONDS;
    intervals += 1;
    if (attempts >= ATTEMPTS && intervals >= INTERVALS) break;
  }
  if (attempts > 0) return Math.max(LEAST, seconds / attempts);
  const longest = workers.flatMap((worker) => worker.longest.map(({ startedAt }) => startedAt));
  const oldest = Math.min(now, ...longest);
  return Math.max(ASSUMED, (now - oldest) / 1_000);
}
