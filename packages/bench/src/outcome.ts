import type { Surroundings } from './machine.js';
import type { Measured, SeriesSettings } from './series.js';
import type { Summary } from './summary.js';

/** All that a series gave: what `--json` prints and `--report` writes. */
export interface Outcome {
  /** As it was called, to be repeated. */
  readonly command: string;
  readonly surroundings: Surroundings;
  readonly settings: SeriesSettings;
  readonly measured: readonly Measured[];
  readonly summaries: readonly Summary[];
}
