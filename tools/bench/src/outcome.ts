import type { MeasuredFigure } from './figure/figure.js';
import type { Size } from './fixture/fixture.js';
import type { Surroundings } from './machine.js';
import type { Measured, SeriesSettings } from './series.js';
import type { Summary } from './summary.js';

/** All measurements: printed by `--json`, written by `--report`. */
export interface Outcome {
  /** The command line, to repeat the measurement. */
  readonly command: string;
  readonly surroundings: Surroundings;
  readonly settings: SeriesSettings;
  readonly size: Size;
  readonly measured: readonly Measured[];
  /** The rows of the table of rates; empty if that was not measured. */
  readonly summaries: readonly Summary[];
  readonly figures: readonly MeasuredFigure[];
}
