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
 * Mean time of a handler, in seconds: the larger of two estimates. By the law of Little it is the number of handlers that
 * run at once, divided by those that end in a second; but that number is a sample, so while a fleet starts it is often
 * too low. And workers report the median of each request that runs; but a median leaves out what is rare and long. Where
 * nothing has ended yet, handlers take at least as long as those have run that run now.
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
  const running = workers.flatMap(({ longest }) => longest);
  const medians = running.flatMap(({ medianMs }) => medianMs ?? []);
  const usual = medians.reduce((sum, ms) => sum + ms, 0) / 1_000 / Math.max(1, medians.length);
  // While a fleet starts, no report may have met a handler that runs: that says nothing.
  const isKnown = attempts > 0 && (seconds > 0 || intervals >= INTERVALS);
  if (isKnown) return Math.max(LEAST, usual, seconds / attempts);
  if (medians.length > 0) return Math.max(LEAST, usual);
  const oldest = Math.min(now, ...running.map(({ startedAt }) => startedAt));
  return Math.max(ASSUMED, (now - oldest) / 1_000);
}
