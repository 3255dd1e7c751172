import { linearRegression, mean } from 'simple-statistics';

/** How fast something grows, with the bounds of its 95 % confidence interval. */
export interface Slope {
  readonly perUnit: number;
  readonly low: number;
  readonly high: number;
}

const BATCHES = 10;
/** 97.5 % quantile of Student's t with BATCHES − 2 degrees of freedom. */
const T = 2.306;
/** A batch has at least this many samples. */
const LEAST_IN_BATCH = 3;

/**
 * Least squares over batch means. Memory a second ago is very nearly memory now (garbage waits to be
 * collected, an append-only file to be rewritten), so a regression over the samples themselves would
 * take their number for certainty and give bounds many times too narrow. The means of ten batches
 * in a row, each longer than such a wave, are nearly independent; what is left is an ordinary
 * regression over ten points, whose error has a t distribution with eight degrees of freedom. No
 * random numbers, and a reader can repeat it by hand.
 *
 * @returns undefined when there are too few samples, or `x` does not grow
 */
export function slope(points: readonly (readonly [x: number, y: number])[]): Slope | undefined {
  if (points.length < BATCHES * LEAST_IN_BATCH) return undefined;
  const means = Array.from({ length: BATCHES }, (_, batch): [number, number] => {
    const from = Math.floor((batch * points.length) / BATCHES);
    const to = Math.floor(((batch + 1) * points.length) / BATCHES);
    const some = points.slice(from, to);
    return [mean(some.map(([x]) => x)), mean(some.map(([, y]) => y))];
  });
  const middle = mean(means.map(([x]) => x));
  const spread = means.reduce((sum, [x]) => sum + (x - middle) ** 2, 0);
  if (spread === 0) return undefined;
  const { m, b } = linearRegression(means);
  const residual = means.reduce((sum, [x, y]) => sum + (y - m * x - b) ** 2, 0);
  const error = Math.sqrt(residual / (BATCHES - 2) / spread);
  return { perUnit: m, low: m - T * error, high: m + T * error };
}
