import { seeded } from '../scaling/random.js';

const SEED = 20_261_123;

/**
 * How long the handler of sub-request `n` waits: ½ to 1½ of the nominal time, the same for every contender and round.
 * Whole milliseconds, as timers would cut off the rest and the mean would be shorter than the nominal time.
 */
export function handlerTimeMs(n: number, nominalMs: number): number {
  if (nominalMs === 0) return 0;
  return Math.round(nominalMs * (0.5 + seeded(SEED + n)()));
}
