/**
 * Cures are switched off at the comments `cure: <name>`. A cure without an anchor would not be switched off, and an
 * anchor that no cure uses protects nothing.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { anchorsIn, changeAt } from '../../scripts/anchors.mjs';
import {
  buildScript,
  libraryNames,
  readLibrary,
  readSource,
  type ScriptMutation,
  scriptNames,
  sourceWithIncludes,
} from '../../scripts/lua-source.mjs';
import { anchored, builtWith } from '../../scripts/tree-copies.mjs';
import { codeCures } from './cures.mjs';
import { historiesOf } from './histories.js';

const sorted = (names: Iterable<string>) => [...new Set(names)].sort();

describe('the cures of the code', () => {
  const root = new URL('../../', import.meta.url);
  const changes = codeCures.flatMap(({ cure, change, changes = [{ cure, change }] }) => changes);

  it.each(changes)('$cure: has one anchor, and what follows can be changed', ({ cure, change }) => {
    const text = readFileSync(fileURLToPath(new URL(builtWith(cure), root)), 'utf8');
    expect(changeAt('js', text, cure, change)).not.toBe(text);
  });

  it('name a test that is there', () => {
    const missing = codeCures.filter(({ test }) => !existsSync(new URL(test, root)));
    expect(missing.map(({ cure, test }) => `${cure}: ${test}`)).toEqual([]);
  });

  it('use each anchor in the sources', () => {
    expect(sorted(anchored().keys())).toEqual(sorted(changes.map(({ cure }) => cure)));
  });
});

describe('the cures of the scripts', () => {
  let mutations: readonly (readonly ScriptMutation[])[];

  beforeAll(async () => {
    const tests = readdirSync('test/lua').filter((file) => /^(?:cures|traces).*\.ts$/.test(file));
    const histories = await historiesOf(tests.map((file) => `test/lua/${file}`));
    const traces = [...histories.values()].flatMap((one) => Object.values(one));
    mutations = traces.flatMap(({ without }) => without.map((mutation) => [mutation].flat()));
  });

  it('have an anchor in their script, once, and what follows can be changed', () => {
    expect(mutations.length).toBeGreaterThan(200);
    const healthy = new Map(scriptNames.map((name) => [name, buildScript(name, 'test').sha]));
    for (const list of mutations) {
      for (const { script } of list) {
        const mine = list.filter((one) => one.script === script);
        expect(buildScript(script, 'test', mine).sha).not.toBe(healthy.get(script));
      }
    }
  });

  it('use each anchor in the scripts', () => {
    const sources = [...scriptNames.map(readSource), ...libraryNames.map(readLibrary)];
    const anchors = sources.flatMap((source) => anchorsIn('lua', source));
    expect(anchors).toEqual([...new Set(anchors)]);
    const used = mutations.flat().flatMap((one) => ('cure' in one ? [one.cure] : []));
    expect(sorted(anchors)).toEqual(sorted(used));
  });

  it('are found in a script in which names and lines have changed', () => {
    const COMMENT = /(--\[\[.*?\]\]|--.*$)/m;
    const renamed = (lua: string) =>
      lua
        .split(COMMENT)
        .map((part) =>
          COMMENT.test(part) ? part : part.replaceAll(/\b(state|permits|batch)\b/g, '$1Here'),
        )
        .join('')
        .replaceAll(' then\n', ' then ');
    const { text } = sourceWithIncludes('settle', 'test');
    const other = renamed(text);
    const cures = anchorsIn('lua', text);
    const plain = (lua: string) => lua.replaceAll(/\s+/g, ' ');
    expect(cures.length).toBeGreaterThan(20);
    let changed = 0;
    for (const cure of cures) {
      for (const change of ['skip', 'never'] as const) {
        const before = attempt(() => changeAt('lua', text, cure, change));
        const after = attempt(() => changeAt('lua', other, cure, change));
        const isSame = (after && plain(after)) === (before && plain(renamed(before)));
        expect(isSame, cure).toBe(true);
        if (before) changed += 1;
      }
    }
    expect(changed).toBeGreaterThan(20);
  });
});

describe('a change at an anchor', () => {
  it('takes the largest node that starts there', () => {
    const lua = 'if a and --[[cure: b]] (b or c) then\n  -- cure: call\n  f(a)\nend';
    expect(changeAt('lua', lua, 'b')).toBe('if a then\n  -- cure: call\n  f(a)\nend');
    expect(changeAt('lua', lua, 'call', { becomes: 'f(c)' })).toContain('f(c)\nend');
    const js = '// cure: x\nif (a && b) c();\nd(a, /* cure: y */ b);';
    expect(changeAt('js', js, 'x', 'never')).toContain('if (false) c();');
    expect(changeAt('js', js, 'y')).toContain('d(a);');
  });

  it.each([
    ['no such anchor', 'other', 'skip', 'occurs 0 times'],
    ['a name that the text does not know', 'x', { becomes: 'g(a)' }, 'nothing is called g'],
    ['what cannot be parsed', 'x', { becomes: 'f(' }, 'cannot be parsed'],
    ['a declaration, which others use', 'y', 'skip', 'cannot be changed'],
  ] as const)('is refused for %s', (_, cure, change, why) => {
    const js = '// cure: x\nf(a);\n// cure: y\nconst b = a;';
    expect(() => changeAt('js', js, cure, change)).toThrow(why);
  });
});

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
