import { z } from 'zod';
import { type OptionSpec, option } from './options.js';

/** How many sub-requests may fail: a count, or a share of all: '5%' or { percent: 5 }. */
export type ToleratedFailures = number | `${number}%` | { readonly percent: number };

const percent = z.number().min(0).max(100);

/** The option `toleratedFailures`. */
export const toleratedFailuresOption: OptionSpec = option.custom(
  z.union([
    z.number().int().min(0).max(1_000_000_000),
    z.string().regex(/^(100|\d{1,2}(\.\d{1,6})?)%$/),
    z.strictObject({ percent }),
  ]),
  "a whole number from 0 to 1000000000, or a share as '5%' or { percent: 5 }, from 0 to 100",
  0,
);

/** As the request keeps it: '3', or '5%'. */
export function encodeToleratedFailures(given: ToleratedFailures): string {
  return typeof given === 'object' ? `${given.percent}%` : String(given);
}
