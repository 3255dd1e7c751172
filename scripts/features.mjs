// Checks docs/features.md, where each feature names the tests that show it, as `folder/file › part of the title`.
// Answers the names for which no test ran and passed.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const NAMED = /`([\w/-]+) › ([^`]+)`/g;

/**
 * @param root folder of the repository
 * @param testResults of vitest's JSON report
 * @param isPlayed whether a file, as `folder/file`, belongs to what was run
 * @returns {{ named: number, unproven: string[] }}
 */
export function unprovenFeatures(root, testResults, isPlayed) {
  const page = join(root, 'docs/features.md');
  if (!existsSync(page)) return { named: 0, unproven: [] };
  const passed = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'passed')
      .map(({ fullName }) => ({ file: name.slice(join(root, 'test/').length), fullName })),
  );
  const named = [...readFileSync(page, 'utf8').matchAll(NAMED)].filter(([, file]) =>
    isPlayed(file),
  );
  const unproven = named
    .filter(
      ([, file, title]) =>
        !passed.some((one) => one.file === `${file}.test.ts` && one.fullName.includes(title)),
    )
    .map(([, file, title]) => `${file} › ${title}`);
  return { named: named.length, unproven };
}
