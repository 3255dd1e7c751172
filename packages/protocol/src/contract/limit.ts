import { type OptionSpec, option } from './options.js';
import { shape } from './shapes.js';

/** The option `limit`: greatest number that runs at once; null or left out: as many as the fleet has slots. */
export const limitOption: OptionSpec = option.custom(
  shape.either(shape.integer(1, 1_000_000), shape.word(null)),
  'a whole number from 1 to 1000000, or null for no limit',
);

/** How a request without a limit is stored: as a number, because the scripts of every release calculate with it. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** As it is stored. */
export const encodeLimit = (limit: number | null | undefined): number => limit ?? NO_LIMIT;

/** As it was given; null: no limit. */
export function decodeLimit(kept: string | undefined): number | null {
  const limit = Number(kept);
  return limit === NO_LIMIT ? null : limit;
}
