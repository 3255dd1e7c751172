import { type OptionSpec, option } from './options.js';
import { shape } from './shapes.js';

/** How many sub-requests may fail: a count, or a share of all: '5%' or { percent: 5 }. */
export type ToleratedFailures = number | `${number}%` | { readonly percent: number };

/** The option `toleratedFailures`. */
export const toleratedFailuresOption: OptionSpec = option.custom(
  shape.either(
    shape.integer(0, 1_000_000_000),
    shape.match(/^(100|\d{1,2}(\.\d{1,6})?)%$/),
    shape.exactly({ percent: shape.number(0, 100) }),
  ),
  "a whole number from 0 to 1000000000, or a share as '5%' or { percent: 5 }, from 0 to 100",
  0,
);

/** As it is stored: '3', or '5%'. */
export function encodeToleratedFailures(given: ToleratedFailures): string {
  return typeof given === 'object' ? `${given.percent}%` : String(given);
}
