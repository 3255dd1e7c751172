import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Mutant, mutants } from '../interleavings/mutants.js';
import { useTestClock, withMutations } from '../support/clock.js';
import { testEvery } from '../support/mode.js';
import { histories, nothingYet } from './histories.js';

useTestClock();

/*
 * Shows that the random histories can fail: against scripts that lack a cure, one of them does. PIECEWORK_MUTANTS
 * names parts of the names of cures ('' for all) and tries these instead, and says of each whether a history failed.
 */
const asked = process.env['PIECEWORK_MUTANTS'];
const seed = Number(process.env['PIECEWORK_SEED'] ?? 20_261_121);
const runs = Number(process.env['PIECEWORK_RUNS'] ?? 120);
/** So long the histories of one mutant may take. */
const MUTANT_MS = 60_000;

/** Cures that the first histories need, and which way to switch each off. */
const NEEDED = [
  { cure: 'top-up in leave', part: 1 },
  { cure: 'delayed work under the reserved consumer', part: 1 },
  { cure: 'absolute totals in append', part: 1 },
  { cure: 'a paused request grants, mints and hands out nothing', part: 2 },
] as const;

const titleOf = ({ cure, history, part }: Mutant) => `${cure} (${history}, part ${part})`;

/** The first history that fails without a cure: which one it is, and what went wrong. */
async function failureWithout({ mutations }: Mutant): Promise<string | undefined> {
  let failure: string | undefined;
  await withMutations(mutations, async () => {
    const { failed, numRuns, errorInstance } = await fc.check(histories(nothingYet()), {
      ...{ seed, numRuns: runs, endOnFailure: true },
      ...{ interruptAfterTimeLimit: MUTANT_MS, markInterruptAsFailure: false },
    });
    if (failed) failure = `history ${numRuns}: ${String(errorInstance).split('\n')[0]}`;
  });
  return failure;
}

describe('the random histories', () => {
  for (const [i, { cure, part }] of NEEDED.entries()) {
    const isChosen = asked === undefined && i % Math.min(testEvery, NEEDED.length) === 0;
    it.runIf(isChosen)(`fail without this cure: ${cure}`, { timeout: 3 * MUTANT_MS }, async () => {
      const all = await mutants();
      const mutant = all.find((one) => one.cure === cure && one.part === part);
      expect(mutant, 'the cure is known').toBeDefined();
      expect(await failureWithout(mutant as Mutant)).toBeDefined();
    });
  }

  it.runIf(asked !== undefined)(
    'fail without these cures',
    { timeout: 24 * 3_600_000 },
    async () => {
      const parts = (asked as string).split(',');
      const chosen = (await mutants()).filter((one) =>
        parts.some((part) => titleOf(one).includes(part)),
      );
      let noticed = 0;
      for (const mutant of chosen) {
        const failure = await failureWithout(mutant);
        if (failure) noticed += 1;
        console.log(`${titleOf(mutant)}: ${failure ?? 'no history fails'}`);
      }
      console.log(`${noticed} of ${chosen.length} mutants noticed`);
      expect(noticed).toBeGreaterThan(0);
    },
  );
});
