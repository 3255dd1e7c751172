import type { MeasuredFigure } from './figures/figure.js';
import type { Size } from './figures/ground.js';
import type { Surroundings } from './machine.js';
import type { Measured, SeriesSettings } from './series.js';
import type { Summary } from './summary.js';

/** All that a series gave: what `--json` prints and `--report` writes. */
export interface Outcome {
  /** As it was called, to be repeated. */
  readonly command: string;
  readonly surroundings: Surroundings;
  readonly settings: SeriesSettings;
  readonly size: Size;
  readonly measured: readonly Measured[];
  /** Of the table of rates; none when it was not asked for. */
  readonly summaries: readonly Summary[];
  readonly figures: readonly MeasuredFigure[];
}
