/**
 * docs/state-machine.md says which states, forms and ways a request has. Here they are counted in the sources, so that
 * none is added without a word there.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  parseHeader,
  readLibrary,
  readSource,
  scriptNames,
  sourceWithIncludes,
} from '../../scripts/lua-source.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const page = readFileSync(join(root, 'docs/state-machine.md'), 'utf8');

/** The key of the state in the header of a script, or that of each request of a group. */
function stateKeysOf(script: string) {
  const { keys } = parseHeader(script, readSource(script));
  return keys
    .filter(({ name }) => ['request', 'requests'].includes(name))
    .flatMap((key) => key.each?.filter(({ name }) => name === 'request') ?? [key]);
}

/** The scripts that get the key of a request's state. */
const scripts = scriptNames.filter((name) => stateKeysOf(name).length > 0);
const libraries = new Set(scripts.flatMap((name) => sourceWithIncludes(name).included));
const withoutComments = (lua: string) => lua.replace(/--\[\[.*?\]\]|--.*$/gm, '');
/** What these scripts and their libraries do, by name. */
const sources = new Map<string, string>([
  ...scripts.map((name) => [name, withoutComments(readSource(name))] as const),
  ...[...libraries].map((name) => [`lib/${name}`, withoutComments(readLibrary(name))] as const),
]);

/** The names of the sources in which a pattern occurs, one for each time. */
const placesOf = (pattern: RegExp) =>
  [...sources].flatMap(([name, lua]) => [...lua.matchAll(pattern)].map(() => name)).sort();

/** An HSET with an argument that matches. */
const hset = (argument: string) =>
  new RegExp(`redis\\.call\\(\\s*'HSET'(?:[^()]|\\((?:[^()]|\\([^()]*\\))*\\))*?${argument}`, 'g');

const cells = (row: string) =>
  row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

/** The rows of the table under a title. */
function rowsOf(title: string): string[][] {
  const [, section = ''] = page.split(new RegExp(`^#+ ${title}`, 'm'));
  const rows = section.split(/^#/m)[0]?.match(/^\|.*\|$/gm) ?? [];
  return rows.slice(2).map(cells);
}

/** What the list under a title names, and the number in the title. */
function listOf(title: string): { readonly count: number; readonly names: string[] } {
  const [, count, section = ''] =
    new RegExp(`^#+ ${title}: (\\d+)\\n([^#]*)`, 'm').exec(page) ?? [];
  const lines = [...section.matchAll(/^- (.*?):/gm)].map(([, names]) => names as string);
  const names = lines.flatMap((line) =>
    [...line.matchAll(/`([^`]+)`/g)].map(([, one]) => one as string),
  );
  return { count: Number(count), names: names.sort() };
}

/** Expects the page to name these, and to count them. */
function expectListed(title: string, found: readonly string[]): void {
  expect(listOf(title), title).toEqual({ count: found.length, names: found });
}

/** The sources of the packages in TypeScript: path and text. */
const typescript = readdirSync(join(root, 'packages'))
  .map((name) => `packages/${name}/src`)
  .filter((folder) => existsSync(join(root, folder)))
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.includes('.generated.'))
      .sort()
      .map(
        (path) => [`${folder}/${path}`, readFileSync(join(root, folder, path), 'utf8')] as const,
      ),
  );

/** The files of TypeScript in which a pattern occurs, one for each time. */
const filesWith = (pattern: RegExp) =>
  typescript.flatMap(([path, text]) => [...text.matchAll(pattern)].map(() => path));

/** The files that send one of these scripts, below packages/protocol/src/calls. */
const sentBy = (...names: string[]) =>
  filesWith(
    new RegExp(`\\b(?:run|callOf)\\(\\s*(?:[\\w.#]+,\\s*)?'(?:${names.join('|')})'`, 'g'),
  ).map((path) => path.replace('packages/protocol/src/calls/', ''));

describe('docs/state-machine.md', () => {
  const transitions = rowsOf('Transitions');

  it('has a transition for each script of the request side, and for no other', () => {
    const named = transitions.map(([script = '']) => script.replaceAll('`', ''));
    expect([...named].sort()).toEqual([...scripts].sort());
  });

  it('says which states each script leads to', () => {
    const states = ['open', 'sealed', 'cancelling', 'complete', 'void', 'dropped'];
    const shown = Object.fromEntries(transitions.map(([name, , to]) => [name, to]));
    for (const name of scripts) {
      const { included } = sourceWithIncludes(name);
      const lua = [name, ...included.map((one) => `lib/${one}`)].map((one) => sources.get(one));
      const written = new Set(
        [...lua.join('\n').matchAll(/'status',\s*(?:status or )?'(\w+)'/g)].map(([, one]) => one),
      );
      // A first state is sealed with its items, or open without them, of which the reply 'created' tells.
      if (included.includes('first-state')) written.add('sealed');
      if (readSource(name).includes("return { 'created'")) written.add('open');
      const to = states.filter((state) => written.has(state));
      const said = states.filter((state) => shown[`\`${name}\``]?.split(', ').includes(state));
      expect(said, name).toEqual(to);
    }
  });

  it('marks the scripts that only read', () => {
    const readers = scripts.filter((name) =>
      parseHeader(name, readSource(name)).flags.includes('no-writes'),
    );
    const marked = transitions.filter(([, , to]) => to === 'reads only').map(([name]) => name);
    expect(marked.sort()).toEqual(readers.map((name) => `\`${name}\``).sort());
  });

  it('shows each type that a key of a request may have', () => {
    const typeOf = (command: string) => {
      if (/^(DEL|EXISTS|PERSIST|PEXPIRE|TYPE|UNLINK)$/.test(command)) return [];
      if (/^[GS]ET$/.test(command)) return ['string'];
      const type = { H: 'hash', X: 'stream', Z: 'zset' }[command.charAt(0)];
      return [type ?? command];
    };
    const shown: Record<string, Set<string>> = {};
    const rows = rowsOf('Layouts');
    for (const [, request = '', work = '', others = ''] of rows) {
      const named = [...others.matchAll(/`(\w+)` (\w+)/g)].map(([, key, type]) => [key, type]);
      for (const [key = '', type = ''] of [['request', request], ['work', work], ...named])
        if (type !== '–') shown[key] = new Set([...(shown[key] ?? []), type]);
    }
    const used: Record<string, Set<string>> = {};
    for (const lua of sources.values())
      for (const [, command = '', key = ''] of lua.matchAll(
        /redis\.p?call\(\s*'(\w+)',\s*(?:'\w+',\s*)?(?:\w+\.)*(\w+)\b/g,
      ))
        if (key in shown) used[key] = new Set([...(used[key] ?? []), ...typeOf(command)]);
    expect(used).toEqual(shown);
    expect(rows.length).toBeLessThanOrEqual(8);
    expect(page).toContain(`## Layouts: ${rows.length}\n`);
    expectListed('Live forms', [...(used['request'] ?? [])].sort());
  });

  it('is right that either form may come to each script', () => {
    for (const name of scripts)
      expect(
        stateKeysOf(name).map(({ type }) => type),
        name,
      ).toEqual(['any']);
  });

  it('names the files that decide by the form, and the only conversion', () => {
    const deciding = placesOf(/\bisCompact\(|'TYPE'|WRONGTYPE|NOGROUP|\.compact\b/g);
    expectListed('Files that decide by the form', [...new Set(deciding)]);
    expect(placesOf(/redis\.p?call\('DEL', request\)/g)).toEqual(['lib/compact']);
    const [telling, ...others] = filesWith(/\bisOtherType\(/g);
    expect(page).toContain(`In TypeScript only \`${telling}\` does`);
    expect(others).toEqual([]);
    expect(filesWith(/WRONGTYPE/g)).toEqual(['packages/protocol/src/redis/redis-error.ts']);
  });

  it('names the ways to submit', () => {
    expectListed('Ways to submit', sentBy('submit', 'create'));
  });

  it('names the ways to enter', () => {
    expectListed('Ways to enter', placesOf(/= (?:state\.out|c\[OUT\]) - 1\b/g));
    expect(sentBy('enter')).toEqual(['request/request-calls.ts']);
  });

  it('names the ways to settle', () => {
    const usual = placesOf(hset("'(?:succeeded|failed|cancelled)'"));
    const compact = placesOf(/c\[FAILED\](?:, c\[\w+\])* =/g);
    // They write the counts of a request that begins, and of one that is redriven.
    const others = ['create', 'run-again'];
    const ends = [...usual, ...compact].filter((name) => !others.includes(name));
    expectListed('Ways to settle', ends.sort());
    expect(sentBy('settle')).toEqual(['request/request-calls.ts']);
  });

  it('names the only way to end, and who calls it', () => {
    const written = placesOf(hset("'outcome'")).concat(placesOf(/c\[OUTCOME\] =/g));
    expectListed('Ways to end', [...new Set(written)]);
    const calls = placesOf(/(?<!function )\bcompleteIfDone\(/g);
    expectListed('Callers of the end', calls);
  });
});
