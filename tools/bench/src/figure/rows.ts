import { max, median, min, quantile } from 'simple-statistics';
import type { Row, Target } from './figure.js';

/** The rest of a row, beside its numbers. */
type Rest = Pick<Row, 'target' | 'note'>;

/** The median of the rounds, with the least and the most of them. */
export function medianRow(
  label: string,
  unit: string,
  values: readonly number[],
  rest: Rest = {},
): Row {
  const all = [...values];
  return { label, unit, value: median(all), range: [min(all), max(all)], ...rest };
}

/**
 * Median over median, which is judged; its range is that of the ratios round by round, as both of a
 * round met the same noise.
 */
export function ratioRow(
  label: string,
  above: readonly number[],
  below: readonly number[],
  target?: Target,
  note?: string,
): Row {
  const ratios = above.map((value, round) => value / (below[round] ?? Number.NaN));
  return {
    label,
    unit: '×',
    value: median([...above]) / median([...below]),
    range: [min(ratios), max(ratios)],
    ...(target ? { target } : {}),
    ...(note ? { note } : {}),
  };
}

/** p50 and p99 of many samples. */
export function percentileRows(label: string, unit: string, samples: readonly number[]): Row[] {
  return [0.5, 0.99].map((p) => ({
    label: `${label}, p${p * 100}`,
    unit,
    value: quantile([...samples], p),
    ...(p === 0.5 ? { note: `${samples.length} samples` } : {}),
  }));
}

/** As many medians as there are blocks, so that a ratio of two p50 shows its noise. */
export function blockMedians(samples: readonly number[], blocks: number): number[] {
  const size = Math.max(1, Math.ceil(samples.length / blocks));
  const medians: number[] = [];
  for (let from = 0; from < samples.length; from += size) {
    medians.push(median(samples.slice(from, from + size)));
  }
  return medians;
}
