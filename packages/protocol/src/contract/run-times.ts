/**
 * How long handlers run: what a worker reports of it in the registry, and when a run counts as far longer than usual.
 * Workers and the doctor use the same rule.
 */

/** The handler of one request that runs longest on one worker. */
export interface LongestRun {
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  /** When it was started, by the worker's own clock, in ms since 1970. */
  readonly startedAt: number;
  /** Median time of the request's last successes on this worker, in ms; left out when there was none. */
  readonly medianMs?: number;
}

/** How many requests a worker reports, those that run longest. */
export const LONGEST_RUNS = 10;

/** A run of this many medians is far longer than usual, if it also took `LEAST_SLOW_MS`. */
const MEDIANS = 10;
export const LEAST_SLOW_MS = 60_000;
/** The time that counts as far longer than usual when there was no success to compare with, in ms. */
const UNKNOWN_SLOW_MS = 600_000;

/** After how long a handler runs far longer than usual, in ms. `medianMs`: of its request, if it is known. */
export function slowAfterMs(medianMs: number | undefined): number {
  return medianMs === undefined ? UNKNOWN_SLOW_MS : Math.max(LEAST_SLOW_MS, MEDIANS * medianMs);
}

/** A run of this many medians is overdue, if it also took this long: a person may want to know sooner than an alarm. */
const LEAST_OVERDUE_MS = 5_000;

/** Whether a run is overdue at `at`: its usual time is known, and it runs far longer. */
export function isOverdueAt(
  { startedAt, medianMs }: Pick<LongestRun, 'startedAt' | 'medianMs'>,
  at: number,
): boolean {
  return medianMs !== undefined && at - startedAt > Math.max(LEAST_OVERDUE_MS, MEDIANS * medianMs);
}

/** '20 ms', '45 s', '4 min': one number with its unit. */
export function lasting(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}

/** The middle one, or the higher of the two in the middle; undefined when the list is empty. */
export function medianOf(times: readonly number[]): number | undefined {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];
}
