/** How long a point of a history is, and how far the history goes back, in ms. */
export const INTERVAL_MS = 10_000;
export const HISTORY_MS = 3_600_000;

/** So many intervals after the last report its workers count as before: then a silent worker is removed. */
const ASSUMED = 6;

/** How a queue worked in ten seconds. */
export interface HistoryPoint {
  /** Start of the interval, in ms since 1970 by the Redis server's clock. */
  readonly at: number;
  /** Sub-requests that were settled in it, by outcome. */
  readonly succeeded: number;
  readonly failed: number;
  /** Those that a worker had. What no worker has is cancelled by `cancel` itself, and not counted here. */
  readonly cancelled: number;
  /** Attempts that failed and were followed by another. */
  readonly retried: number;
  /** How many handlers ran, by the last reports of the workers in the interval. */
  readonly inFlight: number;
  /** How many slots these workers had, and how many workers there were. */
  readonly slots: number;
  readonly workers: number;
}

/** What one queue, or one shard, has of its history. */
export interface Series {
  /** Time of the server. */
  readonly now: number;
  /** How many workers are registered. */
  readonly workers: number;
  /** The latest first; intervals without a report may be missing. */
  readonly intervals: readonly HistoryPoint[];
}

/** Parses an interval as lua/lib/series.lua writes it. */
export function intervalOf(text: string): HistoryPoint {
  const [at = 0, succeeded = 0, failed = 0, cancelled = 0, retried = 0, ...gauges] = text
    .split(' ')
    .map(Number);
  const [inFlight = 0, slots = 0, workers = 0] = gauges;
  return { at, succeeded, failed, cancelled, retried, inFlight, slots, workers };
}

/** How many intervals begin in, or reach into, the last `ms`. */
export const intervalsIn = (ms: number): number => Math.floor(ms / INTERVAL_MS) + 1;

/** The history of a queue of these shards: without gaps, the oldest first. */
export function historyOf(shards: readonly Series[], sinceMs: number): HistoryPoint[] {
  const now = Math.max(...shards.map((shard) => shard.now));
  const points: HistoryPoint[] = [];
  const known = shards.map(({ intervals }) => new Map(intervals.map((one) => [one.at, one])));
  for (let at = startOf(now - sinceMs); at <= now; at += INTERVAL_MS) {
    const parts = shards.map((shard, i) => known[i]?.get(at) ?? assumed(shard, at));
    const sum = (of: (part: HistoryPoint) => number) => parts.reduce((n, part) => n + of(part), 0);
    points.push({
      at,
      succeeded: sum(({ succeeded }) => succeeded),
      failed: sum(({ failed }) => failed),
      cancelled: sum(({ cancelled }) => cancelled),
      retried: sum(({ retried }) => retried),
      inFlight: sum(({ inFlight }) => inFlight),
      // Each worker serves all shards with the same slots.
      slots: Math.max(...parts.map(({ slots }) => slots)),
      workers: Math.max(...parts.map(({ workers }) => workers)),
    });
  }
  return points;
}

const startOf = (time: number) => Math.floor(time / INTERVAL_MS) * INTERVAL_MS;

/** An interval in which nobody reported. The next report adds what was done in it. */
function assumed({ intervals: [last], workers }: Series, at: number): HistoryPoint {
  const nothing = { at, succeeded: 0, failed: 0, cancelled: 0, retried: 0 };
  const age = last ? (at - last.at) / INTERVAL_MS : 0;
  if (!last || workers === 0 || age < 0 || age > ASSUMED)
    return { ...nothing, inFlight: 0, slots: 0, workers: 0 };
  const { inFlight, slots, workers: reporting } = last;
  return { ...nothing, inFlight, slots, workers: reporting };
}
