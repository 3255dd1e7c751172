import { z } from 'zod';
import { type OptionSpec, option } from './options.js';

/** The option `limit`: greatest number in flight at once; null or left out: as many as the fleet has slots. */
export const limitOption: OptionSpec = option.custom(
  z.number().int().min(1).max(1_000_000).nullable(),
  'a whole number from 1 to 1000000, or null for no limit',
);

/** How a request without a limit keeps that: a number, as the scripts of every release calculate with it. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** As the request keeps it. */
export const encodeLimit = (limit: number | null | undefined): number => limit ?? NO_LIMIT;

/** As it was given; null: none. */
export function decodeLimit(kept: string | undefined): number | null {
  const limit = Number(kept);
  return limit === NO_LIMIT ? null : limit;
}
