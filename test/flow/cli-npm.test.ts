import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { STARTS } from '../support/cli.js';
import { test } from '../support/command-line.js';
import { type Heard, listen } from '../support/listen.js';
import { until } from '../support/until.js';

/*
 * Commands that npm has started by its shell, as npx does. npm passes SIGTERM on to the shell only.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));

const GONE = /the npx or npm that started this (worker|command) has ended/;

/** Starts `npm exec piecework …`, without what the npm that runs the tests has put into the environment. */
function startByNpm(args: readonly string[], redis: string): Heard {
  const own = Object.entries(process.env).filter(([name]) => !/^npm_(?!config)/.test(name));
  const child = spawn('npm', ['exec', '--', 'piecework', ...args], {
    cwd: root,
    env: { ...Object.fromEntries(own), REDIS_URL: redis },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const heard = listen(child);
  // Its group has the command also when npm itself has ended, until nothing has its outputs.
  const { pid } = child;
  if (pid === undefined) throw new Error('npm was not started');
  let isOver = false;
  void heard.finished.then(() => {
    isOver = true;
  });
  onTestFinished(() => {
    if (!isOver) process.kill(-pid, 'SIGKILL');
  });
  return heard;
}

test.for([
  { signal: 'SIGTERM', flags: [] },
  { signal: 'SIGTERM', flags: ['--processes', '2'] },
  // The shell of npm stays.
  { signal: 'SIGKILL', flags: [] },
] as const)(
  'a worker that npx started drains and says why when $signal ends npx ($flags)',
  async ({ signal, flags }, { commandLine: { redis, queue, run } }) => {
    const args = ['worker', '--handler', handler, '--queue', queue, ...flags];
    const npm = startByNpm(args, redis);
    const started = flags.length > 0 ? 'worker processes started' : 'worker started';
    await until(() => npm.said.stderr.includes(started), { what: started, ...STARTS });
    npm.child.kill(signal);
    // The outputs close when the last process that has them ends.
    const { stderr } = await npm.finished;
    expect(stderr).toMatch(GONE);
    expect(stderr).toContain('"msg":"worker closed"');
    expect((await run('workers')).stdout).toBe('no workers\n');
  },
);

test('a Redis that npx started ends with npx', async ({ commandLine: { redis } }) => {
  const npm = startByNpm(['dev'], redis);
  await until(() => npm.said.stdout.includes('export REDIS_URL='), STARTS);
  npm.child.kill('SIGTERM');
  expect((await npm.finished).stderr).toMatch(GONE);
});
