import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../scale/scheduler.mjs', import.meta.url));

/** The short form; scheduler.mjs by itself has 10,000 over a minute, and how late they were is for people. */
const SHORT = ['--objects', '500', '--seconds', '3', '--lock-ms', '3000', '--idle-seconds', '5'];

it('takes each of many objects once and in order, none early, and idles quietly', {
  tags: ['processes'],
}, async () => {
  const running = promisify(execFile)(process.execPath, [PROGRAM, ...SHORT, '--json']);
  onTestFinished(() => void running.child.kill());
  const { stdout } = await running;
  const found = JSON.parse(stdout);
  expect(found).toMatchObject({ early: 0, lost: 0, twice: 0, disorder: 0, passed: true });
  // What the killed one held came back.
  expect(found.back).toBe(found.holding);
  expect(found.takes).toBe(found.objects + found.back + found.late);
  expect(found.idle.perSecondAndProcess).toBeLessThanOrEqual(2);
});
