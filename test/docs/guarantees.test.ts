import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { scriptNames } from '../../scripts/lua-source.mjs';

/*
 * docs/guarantees.md is no better than the tests that it names: they have to exist, every script has
 * to have its row, and no known window may be passed over.
 */

const root = fileURLToPath(new URL('../../', import.meta.url));
const text = readFileSync(`${root}docs/guarantees.md`, 'utf8');
const rows = text.split('\n').filter((line) => line.startsWith('|'));

/** The lines of a test file that may hold a title: of a test, or of a case in a table of tests. */
const titlesOf = (source: string) =>
  source
    .split('\n')
    .filter((line) => /^\s*(?:(?:it|test|describe)\(|\]\)\(|['"`]|[\w-]+: \{)/.test(line))
    .join('\n');

describe('the table of guarantees', () => {
  it('names tests that exist', () => {
    const missing: string[] = [];
    let named = 0;
    for (const [, file, name] of text.matchAll(/`([\w/-]+) › ([^`]+)`/g)) {
      named += 1;
      const path = `${root}test/${file}.test.ts`;
      const source = existsSync(path) ? readFileSync(path, 'utf8') : '';
      if (!titlesOf(source).includes(name as string)) missing.push(`${file} › ${name}`);
    }
    expect(missing).toEqual([]);
    expect(named).toBeGreaterThan(80);
  });

  it('has a row for every script that writes', () => {
    const readers = [
      'inspect',
      'pending',
      'should-yield',
      'timed-counts',
      'timed-failures',
      'read-results',
      'read-series',
      'read-state',
    ];
    const steps = rows.map((row) => row.split('|')[1] as string).join(' ');
    const written = scriptNames.filter((name) => !readers.includes(name));
    expect(written.filter((name) => !steps.includes(`\`${name}\``))).toEqual([]);
  });

  it('has a row for every window that is known of other designs, once', () => {
    const ids = (letter: string, n: number) =>
      Array.from({ length: n }, (_, i) => letter + (i + 1));
    const known = [...ids('P', 9), ...ids('W', 24), ...ids('N', 5), ...ids('R', 16)];
    const listed = rows.flatMap((row) => /^\| ([PWNR]\d+) +\|/.exec(row)?.[1] ?? []);
    expect(listed).toEqual(known);
    for (const row of rows.filter((one) => /^\| [PWNR]\d+ +\|/.test(one))) {
      const said = row.split('|')[3] as string;
      expect(said, row).toMatch(/ › |\(†\)|below|Redis itself/);
    }
  });
});
