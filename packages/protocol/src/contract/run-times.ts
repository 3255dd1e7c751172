/**
 * How long handlers run: what a worker says of it in the registry, and from when on that is far longer than
 * usual. Workers and the doctor go by the same rule.
 */

/** The handler of one request that runs longest on one worker. */
export interface LongestRun {
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  /** When it was started, by the worker's own clock, in ms since 1970. */
  readonly startedAt: number;
  /** How long the last successes of the request took on this worker, in ms; left out: there was none. */
  readonly medianMs?: number;
}

/** Of so many requests, those that run longest, a worker says so. */
export const LONGEST_RUNS = 10;

/** So many medians are far longer than usual, but no less than this time, in ms. */
const MEDIANS = 10;
export const LEAST_SLOW_MS = 60_000;
/** The same where no success says what is usual. */
const UNKNOWN_SLOW_MS = 600_000;

/** After how long a handler runs far longer than usual, in ms. `medianMs`: of its request, if it is known. */
export function slowAfterMs(medianMs: number | undefined): number {
  return medianMs === undefined ? UNKNOWN_SLOW_MS : Math.max(LEAST_SLOW_MS, MEDIANS * medianMs);
}

/** The middle one, or the higher of the two in the middle; undefined: there is none. */
export function medianOf(times: readonly number[]): number | undefined {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];
}
