import { beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { partOf } from '../support/mode.js';
import { check, findTools, type Tools } from './spin.mjs';
import { configurations, variants } from './variants.mjs';

/*
 * The small size of `npm run model`: each small configuration goes through all its states and holds,
 * and each variant but those of the large ones, a cure switched off, fails.
 */

const LIMIT_MS = 600_000;
const small = partOf(configurations.filter(({ size }) => size === 'small'));
const byName = new Map(
  configurations.filter(({ size }) => size !== 'full').map((one) => [one.name, one]),
);

let found: Tools | string;
beforeAll(async () => {
  found = await findTools();
}, LIMIT_MS);

/** The tools, or the end of this test with the reason why it is not run. */
function toolsOr(context: TestContext): Tools {
  if (typeof found !== 'string') return found;
  Object.assign(context.task.meta, { skipped: found });
  return context.skip(found);
}

describe('the protocol, whatever happens', () => {
  for (const { name, faults, flags } of small) {
    it(`holds and ends: ${name} (${faults})`, { timeout: LIMIT_MS }, async (context) => {
      const checked = await check(toolsOr(context), flags);
      expect(checked).toMatchObject({ errors: 0, whole: true, violated: '', trail: false });
      // A model that can do nothing holds as well.
      expect(checked.states).toBeGreaterThan(1_000);
    });
  }
});

describe('the protocol without a cure', () => {
  for (const { cure, flag, configuration } of partOf(variants)) {
    const flags = byName.get(configuration)?.flags;
    if (!flags) continue;
    it(`fails: ${cure}`, { timeout: LIMIT_MS }, async (context) => {
      const checked = await check(toolsOr(context), [...flags, flag], { variant: true });
      expect(checked.violated).toMatch(/^assertion violated/);
      expect(checked.trail).toBe(true);
    });
  }
});
