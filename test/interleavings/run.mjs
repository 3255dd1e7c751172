// Plays histories in their long forms; see docs/evidence/interleavings.md.
//   npm run interleavings -- [--seeds N] [--seed S] [--minutes M] [part of a world's name …]
//   npm run interleavings -- --exhaustive [--depth D] [--fault-depth F] …
//   npm run interleavings -- --mutants [part of a cure's name …]
// Ends with 1 when a history failed; of each its minimal form is printed, as text for found/.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';

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
  .parse();
const { exhaustive, mutants, ...numbers } = command.opts();
const mode = mutants ? 'mutants' : exhaustive ? 'exhaustive' : 'random';
const plan = { seeds: mutants ? 25 : 200, ...numbers, mode, only: command.args };

const root = fileURLToPath(new URL('../..', import.meta.url));
const vitest = spawn(
  process.execPath,
  [
    'node_modules/vitest/vitest.mjs',
    'run',
    'test/interleavings/long.test.ts',
    '--disableConsoleIntercept=true',
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PIECEWORK_INTERLEAVINGS: JSON.stringify(plan) },
  },
);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => vitest.kill(signal));
}
const [status] = await once(vitest, 'exit');
process.exitCode = status ?? 1;
