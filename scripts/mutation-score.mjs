// Switches off the cures of test/mutations/cures.mjs, one by one, and prints for each which test failed, then the
// score. Exits with 1 when no test failed without a cure, when a test fails with all cures, or when an anchor does not
// occur exactly once. Arguments: parts of the names of cures, to run these only.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pMap from 'p-map';
import { codeCures, flagCure, luaCures } from '../test/mutations/cures.mjs';
import { switchOff, TreeCopies } from './tree-copies.mjs';

const AT_ONCE = 2;
const RUN_MS = 600_000;
/** Time limit of one test: without some cures a test waits for ever. */
const TEST_MS = 25_000;
const copies = new TreeCopies();

/** Runs tests. Answers their results, or the reason why there are none. */
async function runTests(tree, files, names) {
  const report = join(tree, 'report.json');
  const chosen = names ? ['-t', names.map(literally).join('|')] : [];
  const vitest = spawn(
    process.execPath,
    [
      join(tree, 'node_modules/vitest/vitest.mjs'),
      'run',
      ...['--reporter=json', `--outputFile=${report}`, `--testTimeout=${TEST_MS}`],
      ...chosen,
      ...files,
    ],
    { cwd: tree, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let words = '';
  vitest.stderr.on('data', (chunk) => {
    words = (words + chunk).slice(-2_000);
  });
  const timer = setTimeout(() => vitest.kill('SIGTERM'), RUN_MS);
  await once(vitest, 'close');
  clearTimeout(timer);
  try {
    const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
    return testResults.flatMap(({ name, assertionResults }) =>
      assertionResults.map(({ title, status }) => ({
        file: name.slice(tree.length + 1),
        title,
        status,
      })),
    );
  } catch {
    throw new Error(`vitest said nothing in ${RUN_MS / 1_000} s at most: ${words}`);
  }
}

const literally = (text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The Lua cures: the tests themselves run with and without them. */
function judgeLua(results, { cure, test, history }) {
  const ofHistory = ({ file, title }) =>
    file === test && (title === history || title.startsWith(`${history}: fails without its cure`));
  const mine = results.filter(ofHistory);
  const passed = mine.length > 1 && mine.every(({ status }) => status === 'passed');
  return { cure, caughtBy: passed ? `${test} › ${history}` : undefined };
}

function judgeFlags(results, { cure, test, names }) {
  const mine = results.filter(({ file, title }) => file === test && names.test(title));
  const passed = mine.length > 0 && mine.every(({ status }) => status === 'passed');
  return { cure, caughtBy: passed ? `${test} › ${mine.length} scripts` : undefined };
}

async function judgeCode(healthy, one) {
  const { cure, test, name } = one;
  const wanted = ({ file, title }) => file === test && title === name;
  if (healthy.find(wanted)?.status !== 'passed') {
    return { cure, why: `${test} › ${name} does not pass without a change` };
  }
  const tree = copies.next();
  try {
    const why = switchOff(tree, one);
    if (why) return { cure, why };
    const results = await runTests(tree, [test], [name]);
    const status = results.find(wanted)?.status;
    // A changed file that cannot be loaded runs no test, and proves nothing.
    if (status === undefined) return { cure, why: `${test} could not be run with the change` };
    return { cure, caughtBy: status === 'failed' ? `${test} › ${name}` : undefined };
  } catch (error) {
    return { cure, why: error.message };
  } finally {
    rmSync(tree, { recursive: true, force: true, maxRetries: 20 });
  }
}

function say({ cure, caughtBy, why }) {
  const verdict = caughtBy ? `caught by ${caughtBy}` : `SURVIVED${why ? ` (${why})` : ''}`;
  console.log(`${cure.padEnd(50)} ${verdict}`);
}

const parts = process.argv.slice(2);
const chosen = ({ cure }) => parts.length === 0 || parts.some((part) => cure.includes(part));
const lua = luaCures.filter(chosen);
const flags = [flagCure].filter(chosen);
const code = codeCures.filter(chosen);
const verdicts = [];
try {
  const unique = (list) => [...new Set(list)];
  const luaTests = unique([...lua, ...flags].map(({ test }) => test));
  const codeTests = unique(code.map(({ test }) => test));
  const names = unique(code.map(({ name }) => name));
  const none = Promise.resolve([]);
  const [scripts, healthy] = await Promise.all([
    luaTests.length > 0 ? runTests(copies.next(), luaTests) : none,
    codeTests.length > 0 ? runTests(copies.next(), codeTests, names) : none,
  ]);
  verdicts.push(...lua.map((one) => judgeLua(scripts, one)));
  verdicts.push(...flags.map((one) => judgeFlags(scripts, one)));
  verdicts.forEach(say);
  const judged = await pMap(
    code,
    async (one) => {
      const verdict = await judgeCode(healthy, one);
      say(verdict);
      return verdict;
    },
    { concurrency: AT_ONCE },
  );
  verdicts.push(...judged);
} finally {
  copies.removeAll();
}
const caught = verdicts.filter(({ caughtBy }) => caughtBy).length;
console.log(`${caught}/${verdicts.length}`);
if (caught < verdicts.length || verdicts.length === 0) process.exitCode = 1;
