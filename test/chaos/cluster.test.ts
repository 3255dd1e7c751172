/**
 * The short form of `npm run chaos -- --cluster`.
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

test('failovers and slots on their way lose nothing and count nothing twice', {
  timeout: 480_000,
}, async ({ onTestFinished }) => {
  const { child, finished } = start('--cluster', '--minutes', '0.4', '--rate', '100');
  onTestFinished(() => void child.kill('SIGTERM'));
  const { code, stdout, stderr } = await finished;
  expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toContain('Clean.');
  for (const fault of ['fail over', 'move queue slot', 'move request slot', 'kill worker'])
    expect(stdout).toMatch(new RegExp(`│ ${fault} +│ +[1-9]`));
});

test('masters are killed in a cluster only', async () => {
  const { code, stderr } = await start('--kill-masters').finished;
  expect(code).toBe(2);
  expect(stderr).toContain('--cluster');
});
