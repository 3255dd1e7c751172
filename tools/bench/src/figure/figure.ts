import type { Fixture } from '../fixture/fixture.js';

/** The bound that a value has to keep. */
export type Target = { readonly atMost: number } | { readonly atLeast: number };

/** One measured value: one line of the table, one bar of the plot. */
export interface Row {
  readonly label: string;
  readonly value: number;
  readonly unit: string;
  /** Range over the rounds, or over blocks of samples, if there are several. */
  readonly range?: readonly [least: number, most: number];
  /** Only for rows that are judged; the other rows show the values behind them. */
  readonly target?: Target;
  /** Explains where the value comes from, or what bounds it. */
  readonly note?: string;
}

/** One question about Piecework whose answer is a number. */
export interface Figure {
  readonly title: string;
  /** Definition of the number. */
  readonly definition: string;
  /** How it is measured, in enough detail to repeat it. */
  readonly method: string;
  /** In words; 'reported' when there is none. */
  readonly target: string;
  measure(fixture: Fixture): Promise<Row[]>;
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
