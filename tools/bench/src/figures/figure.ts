import type { Ground } from './ground.js';

/** What a value has to be: at most or at least so much. */
export type Target = { readonly atMost: number } | { readonly atLeast: number };

/** One measured value: one line of the table, one bar of the plot. */
export interface Row {
  readonly label: string;
  readonly value: number;
  readonly unit: string;
  /** Of the rounds, or blocks of samples, where there are several. */
  readonly range?: readonly [least: number, most: number];
  /** Only for the rows that are judged; the others are what they were made of. */
  readonly target?: Target;
  /** Where it comes from, or what bounds it. */
  readonly note?: string;
}

/** One question about Piecework that has a number for an answer. */
export interface Figure {
  readonly title: string;
  /** What the number is. */
  readonly definition: string;
  /** How it is measured, so that somebody else could. */
  readonly method: string;
  /** In words; 'reported' when there is none. */
  readonly target: string;
  measure(ground: Ground): Promise<Row[]>;
}

/** A figure that was measured. */
export interface MeasuredFigure extends Omit<Figure, 'measure'> {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly seconds: number;
}

export function verdict({ value, target }: Row): 'reached' | 'not reached' | '' {
  if (target === undefined) return '';
  const reached = 'atMost' in target ? value <= target.atMost : value >= target.atLeast;
  return reached ? 'reached' : 'not reached';
}
