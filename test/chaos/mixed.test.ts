/**
 * The short form of `npm run chaos -- --mixed`: workers and producers of two revisions in one fleet. It builds the
 * other revision first, which takes longer than all else here, so it is played by `npm run test:mixed` alone.
 * @module-tag processes
 */
import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { listen } from '../support/listen.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../tools/chaos/dist/main.js', import.meta.url));
const revision = process.env['PIECEWORK_MIXED'];

/** Whether this clone has the revision: a shallow one may not. */
const isThere = (name: string) =>
  spawnSync('git', ['cat-file', '-e', `${name}^{commit}`], { cwd: ROOT }).status === 0;

test.runIf(revision)(
  'two revisions in one fleet lose nothing and count nothing twice',
  { timeout: 900_000 },
  async ({ onTestFinished, skip }) => {
    const other = revision as string;
    if (!isThere(other)) {
      const why = `this clone has no ${other}: git fetch --unshallow`;
      console.log(why);
      skip(why);
    }
    const args = ['chaos', '--mixed', other, '--minutes', '0.4', '--seed', '1', '--rate', '300'];
    const { child, finished } = listen(
      spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    onTestFinished(() => void child.kill('SIGTERM'));
    const { code, stdout, stderr } = await finished;
    expect({ code, stdout, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain('Clean.');
    // Without faults the zeros would mean nothing.
    expect(stderr).toMatch(/kill worker \d/);
  },
);
