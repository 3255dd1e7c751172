// Plays histories in their long forms; see docs/evidence/interleavings.md.
//   npm run interleavings -- [--seeds N] [--seed S] [--minutes M] [part of a world's name …]
//   npm run interleavings -- --exhaustive [--depth D] [--fault-depth F] …
//   npm run interleavings -- --mutants [part of a cure's name …]
//   npm run interleavings -- --renew [part of what a history of found/ says …]
//   npm run interleavings -- --code [part of a cure's name …]
// Ends with 1 when a history failed; of each its minimal form is printed, as text for found/.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { switchOff, TreeCopies } from '../../scripts/tree-copies.mjs';
import { codeCures } from '../mutations/cures.mjs';

const positive = (text) => {
  const n = Number(text);
  if (Number.isFinite(n) && n > 0) return n;
  throw new InvalidArgumentError('not a positive number');
};

const command = new Command('interleavings')
  .argument('[only...]', 'parts of the names of worlds or cures')
  .option('--seeds <n>', 'seeds for each world (default 200; with --mutants 25)', positive)
  .option('--seed <n>', 'the first', positive, 1)
  .option('--minutes <n>', 'longest time', positive, 600)
  .option('--exhaustive', 'all orders of the smallest worlds')
  .option('--depth <n>', 'steps in which orders are gone through', positive, 14)
  .option('--fault-depth <n>', 'the same, with a fault', positive, 9)
  .option('--mutants', 'with the cures of test/mutations/cures.mjs switched off')
  .option('--code', 'with the cures of the code switched off, each in a copy of the repository')
  .option('--renew', 'finds the histories of found/ anew that a change made others')
  .option('--by-chance', 'with --mutants and --code: without the histories that aim at a cure')
  .parse();
const { exhaustive, mutants, code, renew, ...numbers } = command.opts();
const chosen = { mutants, exhaustive, renew };
const mode = Object.keys(chosen).find((one) => chosen[one]) ?? 'random';
const plan = { seeds: mutants || code ? 25 : 200, ...numbers, mode, only: command.args };

const root = fileURLToPath(new URL('../..', import.meta.url));
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

async function run(tree, what) {
  const vitest = spawn(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      'test/interleavings/long.test.ts',
      '--disableConsoleIntercept=true',
    ],
    {
      cwd: tree,
      stdio: 'inherit',
      env: { ...process.env, PIECEWORK_INTERLEAVINGS: JSON.stringify(what) },
    },
  );
  const stop = (signal) => vitest.kill(signal);
  for (const signal of SIGNALS) process.on(signal, stop);
  const [status] = await once(vitest, 'exit');
  for (const signal of SIGNALS) process.off(signal, stop);
  if (status === null) throw new Error('the tests were ended');
  return status;
}

/** Each cure of the code in turn. Answers how many were not seen to be missing. */
async function runWithoutCode() {
  const copies = new TreeCopies();
  let missed = 0;
  try {
    for (const one of codeCures) {
      const { cure } = one;
      if (plan.only.length > 0 && !plan.only.some((part) => cure.includes(part))) continue;
      const tree = copies.next();
      const why = switchOff(tree, one);
      if (why) throw new Error(why);
      if ((await run(tree, { ...plan, mode: 'code', cure })) !== 0) missed += 1;
      rmSync(tree, { recursive: true, force: true });
    }
  } finally {
    copies.removeAll();
  }
  return missed;
}

process.exitCode = code ? await runWithoutCode() : await run(root, plan);
