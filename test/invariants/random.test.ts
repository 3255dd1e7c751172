import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { useTestClock } from '../support/clock.js';
import { World } from './world.js';

useTestClock();

/*
 * Random histories of the world (world.ts) against the scripts. PIECEWORK_RUNS says how many,
 * PIECEWORK_SEED with which seed; what fails is shrunk (for minutes, unless PIECEWORK_UNSHRUNK is set) and
 * printed with its seed.
 */
const unshrunk = process.env['PIECEWORK_UNSHRUNK'] !== undefined;
const runs = Number(process.env['PIECEWORK_RUNS'] ?? 120);
const seed = Number(process.env['PIECEWORK_SEED'] ?? 20_261_121);

const setting = fc.record({
  workers: fc.integer({ min: 1, max: 3 }),
  slots: fc.integer({ min: 1, max: 3 }),
  limit: fc.integer({ min: 1, max: 3 }),
  attempts: fc.integer({ min: 1, max: 2 }),
  maxCrashes: fc.integer({ min: 1, max: 3 }),
  onProducerLost: fc.constantFrom('seal' as const, 'seal' as const, 'cancel' as const),
  items: fc.integer({ min: 0, max: 9 }),
  submitted: fc.constantFrom(true, true, false),
  failed: fc.constantFrom(false, false, true),
  meddling: fc.constantFrom(false, false, true),
  neighbour: fc.constantFrom(null, null, 0, 1),
  operated: fc.constantFrom(false, true, true),
  deadlineMs: fc.constantFrom(null, null, null, 20_000, 60_000),
  tolerated: fc.constantFrom(null, null, null, 0, 1),
  clockSteps: fc.boolean(),
});

const step = fc.record({
  who: fc.nat({ max: 19 }),
  what: fc.nat({ max: 1_000 }),
  fault: fc.nat({ max: 99 }),
});

describe('whatever happens', () => {
  it('keeps the books, keeps the limit, and ends with everything settled once', async () => {
    let slowest = 0;
    const ends: Record<string, number> = {};
    let crashed = 0;
    let alone = 0;
    let redriven = 0;
    const property = fc.asyncProperty(
      setting,
      fc.array(step, { minLength: 40, maxLength: 200, size: 'max' }),
      async (given, steps) => {
        const world = await World.create(given);
        try {
          for (const one of steps) await world.step(one);
          await world.heal();
          await world.judge();
          slowest = Math.max(slowest, world.healedAfterMs);
          for (const [outcome, n] of Object.entries(world.ends)) {
            ends[outcome] = (ends[outcome] ?? 0) + n;
          }
          crashed += world.crashed;
          redriven += world.redriven;
          alone += world.alone.size;
          await world.ghosts();
          await world.heal();
          await world.judge();
        } finally {
          await world.remove();
        }
      },
    );
    await fc.assert(property, { seed, numRuns: runs, endOnFailure: unshrunk });
    console.log(
      `${runs} runs; slowest recovery ${slowest} ms; ended ${JSON.stringify(ends)}; ${crashed} by crashes, ${alone} ran alone, ${redriven} redriven`,
    );
    expect(Math.min(crashed, alone, redriven)).toBeGreaterThan(0);
    // A slow look, and what follows from it; mostly it is the audit.
    expect(slowest).toBeLessThanOrEqual(90_000);
    // Or else the histories have become too tame to find anything.
    expect(Object.keys(ends).sort()).toEqual(['cancelled', 'failed', 'succeeded']);
  }, 4_000_000);
});
