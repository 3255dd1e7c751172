/**
 * The short form of `npm run chaos -- --sentinel --kill-masters`.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { listen } from '../support/listen.js';

const PROGRAM = fileURLToPath(new URL('../../tools/chaos/dist/main.js', import.meta.url));

const start = (...args: string[]) =>
  listen(
    spawn(process.execPath, [PROGRAM, 'chaos', ...args], { stdio: ['ignore', 'pipe', 'pipe'] }),
  );

test('planned failovers by Sentinel lose nothing, and killed masters only what was not replicated', {
  timeout: 480_000,
}, async ({ onTestFinished }) => {
  const run = ['--sentinel', '--kill-masters', '--minutes', '0.5', '--rate', '100'];
  const { child, finished } = start(...run);
  onTestFinished(() => void child.kill('SIGTERM'));
  const { code, stdout, stderr } = await finished;
  expect(code, `${stdout.slice(-3_000)}\n${stderr}`).toBe(0);
  expect(stdout).toContain('Clean.');
  for (const fault of ['fail over', 'kill master', 'kill worker'])
    expect(stdout).toMatch(new RegExp(`│ ${fault} +│ +[1-9]`));
});

test('a cluster and servers behind Sentinel are attacked in runs of their own', async () => {
  const { code, stderr } = await start('--sentinel', '--cluster').finished;
  expect(code).toBe(2);
  expect(stderr).toContain('exclude each other');
});
