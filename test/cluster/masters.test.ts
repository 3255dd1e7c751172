/**
 * How the work of many requests spreads over the masters.
 * @module-tag processes
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../scale/masters.mjs', import.meta.url));

interface Run {
  readonly wrong: readonly string[];
  readonly rows: readonly {
    readonly queue: boolean;
    readonly requests: number;
    readonly scripts: number;
    readonly calls: number;
    readonly cpuMs: number;
  }[];
}

/** The short form; masters.mjs by itself has a thousand requests. */
test('sixty requests are complete and exact, every master has its part, and nothing crosses slots', async ({
  onTestFinished,
}) => {
  const spread = spawn(
    process.execPath,
    [PROGRAM, '--requests', '60', '--items', '10', '--cross', '--json'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  onTestFinished(() => void spread.kill('SIGTERM'));
  const ended = once(spread, 'exit');
  const { even, apart, errors } = JSON.parse(await text(spread.stdout)) as {
    even: Run;
    apart: Run;
    errors: Record<string, number>;
  };
  expect([...even.wrong, ...apart.wrong]).toEqual([]);
  for (const { requests, scripts, calls, cpuMs } of even.rows)
    for (const figure of [requests, scripts, calls, cpuMs]) expect(figure).toBeGreaterThan(0);
  for (const { queue, requests, scripts } of apart.rows) {
    expect(requests > 0).toBe(!queue);
    expect(scripts).toBeGreaterThan(0);
  }
  // The one that the program sends on purpose is seen, and its exit code says so.
  expect(errors['CROSSSLOT']).toBe(1);
  expect((await ended)[0]).toBe(1);
});
