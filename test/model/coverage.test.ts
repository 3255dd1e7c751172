import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { codeCures, flagCure, luaCures } from '../mutations/cures.mjs';
import { actions, scripts } from './scripts.mjs';
import { notSteps, readOnly, unmodelled } from './unmodelled.mjs';
import { configurations, variants } from './variants.mjs';

const sorted = (names: readonly string[]) => [...names].sort();

describe('the model of the protocol', () => {
  it('has an action for every script or says why not, and no action without a script', () => {
    const modelled = actions().map(({ script }) => script);
    const named = [...modelled, ...[...readOnly, ...notSteps].map(({ script }) => script)];
    expect(sorted(named)).toEqual(sorted(scripts()));
  });

  it('uses each of its actions', () => {
    for (const { script, calls } of actions()) expect(calls, script).toBeGreaterThan(0);
  });

  it('leaves out only scripts that write nothing', () => {
    for (const { script } of readOnly) {
      const lua = readFileSync(new URL(`../../lua/${script}.lua`, import.meta.url), 'utf8');
      expect(lua).toContain('-- FLAGS no-writes\n');
    }
  });

  it('has a variant without each cure, or says why not', () => {
    const cures = [...luaCures, ...codeCures, flagCure].map(({ cure }) => cure);
    const named = [...variants, ...unmodelled].map(({ cure }) => cure);
    expect(cures.filter((cure) => !named.includes(cure))).toEqual([]);
    expect(sorted([...new Set(named)])).toEqual(sorted(named));
  });

  it('checks each variant in a configuration that is checked without it', () => {
    const names = configurations.map(({ name }) => name);
    for (const { configuration } of variants) expect(names).toContain(configuration);
  });
});
