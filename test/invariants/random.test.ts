import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { useTestClock } from '../support/clock.js';
import { playsAll } from '../support/mode.js';
import { histories, nothingYet } from './histories.js';

useTestClock();

/*
 * Random histories (histories.ts) against the scripts. PIECEWORK_RUNS says how many, PIECEWORK_SEED with which seed.
 * A history that fails is shrunk, which takes minutes unless PIECEWORK_UNSHRUNK is set, and printed with its seed.
 */
const unshrunk = process.env['PIECEWORK_UNSHRUNK'] !== undefined;
const runs = Number(process.env['PIECEWORK_RUNS'] ?? (playsAll ? 120 : 60));
const seed = Number(process.env['PIECEWORK_SEED'] ?? 20_261_121);

describe('whatever happens', () => {
  it('keeps the books, keeps the limit, and ends with everything settled once', async () => {
    const tally = nothingYet();
    await fc.assert(histories(tally), { seed, numRuns: runs, endOnFailure: unshrunk });
    const { slowestMs, outcomes, crashed, isolated, redriven } = tally;
    console.log(
      `${runs} runs; slowest recovery ${slowestMs} ms; ended ${JSON.stringify(outcomes)}; ${crashed} by crashes, ${isolated} ran isolated, ${redriven} redriven`,
    );
    expect(Math.min(crashed, isolated, redriven)).toBeGreaterThan(0);
    // A slow tend, and what follows from it; mostly it is the audit.
    expect(slowestMs).toBeLessThanOrEqual(90_000);
    // Otherwise the histories have become too tame to find anything.
    expect(Object.keys(outcomes).sort()).toEqual(['cancelled', 'failed', 'succeeded']);
  }, 4_000_000);
});
