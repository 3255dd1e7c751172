import { max, min } from 'simple-statistics';
import { readSeries, type Sample, type Series } from './samples.js';
import { type Slope, slope } from './slope.js';

/** Growth of one series over a soak, without its warm-up. */
export interface Growth {
  readonly name: string;
  readonly minutes: number;
  readonly samples: number;
  readonly leastBytes: number;
  readonly mostBytes: number;
  readonly perMinute: Slope | undefined;
  readonly perMillionSettled: Slope | undefined;
}

export interface Soak {
  readonly warmUpMs: number;
  readonly settled: number;
  readonly growths: readonly Growth[];
  /** Number of processes that were killed too early for a slope. */
  readonly tooShort: number;
}

const MINUTE_MS = 60_000;

/**
 * How fast the memory of Redis and of each process grows. The first `warmUpMs` of each series (for a process, since its
 * start) are left out: in that time code is compiled and heaps find their size. A series of less than `leastMs` after
 * that has no slope.
 */
export async function soak(
  folder: string,
  { warmUpMs = 2 * MINUTE_MS, leastMs = 3 * MINUTE_MS } = {},
): Promise<Soak> {
  const series = await readSeries(folder);
  const warm = series.map((each) => afterWarmUp(each, warmUpMs));
  const long = warm.filter(({ samples }) => lasts(samples) >= leastMs);
  const settled = series[0]?.samples.at(-1)?.settled ?? 0;
  const tooShort = warm.length - long.length;
  return { warmUpMs, settled, growths: long.map(growthOf), tooShort };
}

function afterWarmUp({ name, samples }: Series, warmUpMs: number): Series {
  const fromMs = (samples[0]?.ms ?? 0) + warmUpMs;
  return { name, samples: samples.filter(({ ms }) => ms >= fromMs) };
}

const lasts = (samples: readonly Sample[]): number =>
  (samples.at(-1)?.ms ?? 0) - (samples[0]?.ms ?? 0);

function growthOf({ name, samples }: Series): Growth {
  const bytes = samples.map((sample) => sample.bytes);
  const over = (unit: (sample: Sample) => number) =>
    slope(samples.map((sample) => [unit(sample), sample.bytes]));
  return {
    name,
    minutes: lasts(samples) / MINUTE_MS,
    samples: samples.length,
    leastBytes: min(bytes),
    mostBytes: max(bytes),
    perMinute: over(({ ms }) => ms / MINUTE_MS),
    perMillionSettled: over(({ settled }) => settled / 1e6),
  };
}
