import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { testEvery } from '../support/mode.js';

const PROGRAM = fileURLToPath(new URL('../../tools/chaos/dist/main.js', import.meta.url));

/** The short form of `npm run chaos`, which starts a server of its own and judges what it did. */
test('chaos for a short while loses nothing and counts nothing twice', {
  timeout: 300_000,
  tags: ['processes'],
}, async ({ onTestFinished }) => {
  // Also in the shorter time each fault comes at least once.
  const minutes = testEvery > 1 ? '0.2' : '0.5';
  const args = [PROGRAM, 'chaos', '--minutes', minutes, '--seed', '1'];
  const chaos = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void chaos.kill('SIGTERM'));
  const exit = once(chaos, 'exit');
  const [said, progress] = await Promise.all([text(chaos.stdout), text(chaos.stderr)]);
  expect({ status: (await exit)[0], said, progress }).toMatchObject({ status: 0 });
  expect(said).toContain('Clean.');
  // Without faults the zeros would mean nothing.
  expect(progress).toMatch(/kill worker \d/);
  expect(progress).toMatch(/restart redis \d/);
});

test('a wrong option of chaos ends with code 2', async () => {
  const chaos = spawn(process.execPath, [PROGRAM, 'chaos', '--minutes', 'soon'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [words, [status]] = await Promise.all([text(chaos.stderr), once(chaos, 'exit')]);
  expect(status).toBe(2);
  expect(words).toContain('--minutes');
});
