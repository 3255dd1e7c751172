import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

/*
 * Whatever the published packages bring along runs on the oldest Node that they name: otherwise npm warns its users.
 */

interface Lock {
  importers: Record<string, { dependencies?: Record<string, { version: string }> }>;
  packages: Record<string, { engines?: { node?: string } }>;
  snapshots: Record<string, { dependencies?: Record<string, string> }>;
}

const lock = parse(readFileSync(new URL('../../pnpm-lock.yaml', import.meta.url), 'utf8')) as Lock;
const OLDEST = 20;

/** What a package depends on in the end, as `name@version`, without our own. */
function* broughtBy(dependencies: Record<string, string>, seen: Set<string>): Generator<string> {
  for (const [name, version] of Object.entries(dependencies)) {
    const key = `${name}@${version}`;
    if (version.startsWith('link:') || seen.has(key)) continue;
    seen.add(key);
    yield key.replace(/\(.*/, '');
    yield* broughtBy(lock.snapshots[key]?.dependencies ?? {}, seen);
  }
}

/** Whether a range such as '>=18', '^20.19 || >=22' or '14 || 16 || >=18' has the oldest Node, in some version of it. */
const runsOnOldest = (range: string): boolean =>
  range.split('||').some((part) => {
    const [, bound = '', major = '0'] = /([<>=^~]*)\s*v?(\d+|\*)/.exec(part) ?? [];
    return bound.startsWith('>') ? Number(major) <= OLDEST : [`${OLDEST}`, '*'].includes(major);
  });

test.each([
  ['>=18', true],
  ['^20.19 || >=22', true],
  ['14 || >=16.14', true],
  ['*', true],
  ['>=22', false],
  ['^18 || ^22', false],
])('reads the range %s', (range, allowed) => expect(runsOnOldest(range)).toBe(allowed));

test('everything that the packages bring along runs on the oldest Node', () => {
  const seen = new Set<string>();
  const brought = Object.entries(lock.importers)
    .filter(([folder]) => folder.startsWith('packages/'))
    .flatMap(([, { dependencies = {} }]) => {
      const versions = Object.entries(dependencies).map(([name, { version }]) => [name, version]);
      return [...broughtBy(Object.fromEntries(versions), seen)];
    });
  expect(brought.length).toBeGreaterThan(50);
  const tooNew = brought.filter((one) => !runsOnOldest(lock.packages[one]?.engines?.node ?? '*'));
  expect(tooNew).toEqual([]);
});
