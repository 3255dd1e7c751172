// Runs the tests. Arguments go to vitest, such as a part of a file name or `-t <test name>`.
// PIECEWORK_TEST_REDIS chooses the Redis (see CONTRIBUTING.md).
// `--cluster`: against a Redis Cluster, the tests that make sense there (see vitest.config.ts).
// `--acl`: the flow tests as the ACL users of docs/operations.md (also with `--cluster`).
// `--tls`: the flow tests on servers that speak TLS and nothing else.
// `--all`: also the exhaustive tests (exhaustive.mjs), which are left out unless files are named;
// `--exhaustive`: only these.
// Prints what was skipped and why, and ends with the line `N passed, N failed`. The exit code is vitest's.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sweepContainers, whyNoEngine, whyNoImage } from './docker-engine.mjs';
import { isExhaustive } from './exhaustive.mjs';
import { unprovenFeatures } from './features.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Each sets one variable (see test/support/mode.ts). */
const SWITCHES = {
  '--cluster': { PIECEWORK_TEST_REDIS: 'cluster' },
  '--acl': { PIECEWORK_TEST_ACL: '1' },
  '--tls': { PIECEWORK_TEST_TLS: '1' },
  '--all': { PIECEWORK_TEST_WHICH: 'all' },
  '--exhaustive': { PIECEWORK_TEST_WHICH: 'exhaustive' },
};
const asked = process.argv.slice(2).filter((argument) => argument in SWITCHES);
const given = process.argv.slice(2).filter((argument) => !(argument in SWITCHES));
const run = `${hostname()}:${process.pid}`;
const env = { ...process.env, PIECEWORK_TEST_RUN: run };
for (const one of asked) Object.assign(env, SWITCHES[one]);
const inDocker = env.PIECEWORK_TEST_REDIS === 'docker';

if (inDocker) {
  env.PIECEWORK_TEST_REDIS_IMAGE ||= 'redis:7.4';
  const reason = whyNoEngine() ?? whyNoImage(env.PIECEWORK_TEST_REDIS_IMAGE, { pullMs: 300_000 });
  if (reason) {
    console.error(`nothing was tested on ${env.PIECEWORK_TEST_REDIS_IMAGE}: ${reason}`);
    process.exit(1);
  }
}

const folder = mkdtempSync(join(tmpdir(), 'piecework-test-'));
const report = join(folder, 'report.json');
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
sweepContainers(run);
const vitest = spawn(
  join(root, 'node_modules', '.bin', 'vitest'),
  ['run', ...reporters, ...given],
  { cwd: root, stdio: 'inherit', env },
);
// Ctrl-C reaches vitest as well; this process remains to clean up after it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => vitest.kill(signal));
}
const [status] = await once(vitest, 'exit');
try {
  sum(JSON.parse(readFileSync(report, 'utf8')));
} catch {
  console.log('0 passed, 1 failed');
} finally {
  rmSync(folder, { recursive: true, force: true });
  sweepContainers(run);
}
process.exitCode ||= status ?? 1;

/** Prints the sums of vitest's report. A file that could not be loaded counts as one failure. */
function sum({ numPassedTests, numFailedTests, testResults }) {
  const unloaded = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  );
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const reasons = tests
    .filter(({ status }) => status === 'skipped' || status === 'pending')
    .map(({ meta, tags }) => meta.skipped ?? ['not chosen', ...tags].join(', '));
  for (const reason of new Set(reasons)) {
    console.log(`skipped ${reasons.filter((one) => one === reason).length}: ${reason}`);
  }
  const here = tests.filter(
    ({ status, tags }) => status === 'passed' && tags.includes('processes'),
  );
  if (inDocker && here.length > 0) {
    const rest = `used servers of this machine, not ${env.PIECEWORK_TEST_REDIS_IMAGE}`;
    console.log(`${here.length} of those passed (tag processes) ${rest}`);
  }
  // Only a whole run, on servers of this machine, shows which features have no passing test.
  const whole =
    given.length === 0 && asked.every((one) => one === '--all') && !env.PIECEWORK_TEST_REDIS;
  const unproven = whole ? missingProofs(testResults) : 0;
  const failed = numFailedTests + unloaded.length + unproven;
  console.log(`${numPassedTests} passed, ${failed} failed`);
  if (unproven > 0) process.exitCode = 1;
}

/** How many of the tests that docs/features.md names did not run or did not pass. */
function missingProofs(testResults) {
  const all = env.PIECEWORK_TEST_WHICH === 'all';
  const isPlayed = (file) => all || !isExhaustive(`test/${file}`);
  const { named, unproven } = unprovenFeatures(root.replace(/\/$/, ''), testResults, isPlayed);
  for (const one of unproven) console.log(`docs/features.md: not shown by a test: ${one}`);
  console.log(
    `docs/features.md: ${named - unproven.length} of ${named} tests that it names ran and passed`,
  );
  return unproven.length;
}
