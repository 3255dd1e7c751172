// Runs the tests. Arguments go to vitest, such as a part of a file name or `-t <test name>`.
// `--cluster`: against a Redis Cluster, those tests that make sense there.
// Ends with the line `N passed, N failed`; the exit code is vitest's own.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CLUSTER_TESTS = ['test/flow', 'test/cluster', 'test/lua'];
const root = fileURLToPath(new URL('..', import.meta.url));
const cluster = process.argv.includes('--cluster');
const given = process.argv.slice(2).filter((argument) => argument !== '--cluster');
const folder = mkdtempSync(join(tmpdir(), 'piecework-test-'));
const report = join(folder, 'report.json');

/** Counts from vitest's report; a file that could not even be loaded counts as one failure. */
function counts() {
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const unloaded = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  );
  return `${numPassedTests} passed, ${numFailedTests + unloaded.length} failed`;
}

const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
const { status } = spawnSync(
  join(root, 'node_modules', '.bin', 'vitest'),
  ['run', ...reporters, ...(cluster ? CLUSTER_TESTS : []), ...given],
  {
    cwd: root,
    stdio: 'inherit',
    env: cluster ? { ...process.env, PIECEWORK_TEST_REDIS: 'cluster' } : process.env,
  },
);
try {
  console.log(counts());
} catch {
  console.log('0 passed, 1 failed');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = status ?? 1;
