import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { testUrl } from '../support/redis.js';

const PROGRAM = fileURLToPath(new URL('./kill-storm.mjs', import.meta.url));
const SIZE = 4_000;

/** The short form; kill-storm.mjs by itself is the long one. It fails by itself if anything is amiss. */
test('4,000 sub-requests outlive a fleet whose workers are killed one after the other', {
  timeout: 240_000,
}, async ({ onTestFinished }) => {
  const url = await testUrl();
  const size = ['--size', String(SIZE), '--kills', '4'];
  const args = [PROGRAM, ...size, '--seed', '7', '--redis', url, '--json'];
  const storm = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void storm.kill('SIGTERM'));
  const said = await text(storm.stdout);
  const figures = JSON.parse(said.trim().split('\n').at(-1) || '{}');
  console.log(figures);
  expect(figures.size).toBeGreaterThanOrEqual(SIZE);
  expect(figures.kills).toBeGreaterThan(3);
  expect(figures.orphans).toBeGreaterThan(0);
});
