import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../scale/end-cost.mjs', import.meta.url));

interface Figures {
  readonly cancels: readonly { readonly commands: number }[];
  readonly drops: readonly { readonly queued: number; readonly keysBehind: number }[];
  readonly ratios: { readonly commands: number };
  readonly mostAtOnce: number;
}

/** The short form; end-cost.mjs by itself goes to a million, and looks at the CPU as well. */
test('a cancel costs as many commands with 50 times as many queued, and a drop frees memory after the call', {
  tags: ['processes'],
}, async ({ onTestFinished }) => {
  const sizes = ['--few', '1000', '--many', '50000', '--rounds', '1'];
  const cost = spawn(process.execPath, [PROGRAM, ...sizes, '--commands-only', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void cost.kill('SIGTERM'));
  const { cancels, drops, ratios, mostAtOnce } = JSON.parse(await text(cost.stdout)) as Figures;
  expect(cancels.map(({ commands }) => commands > 0)).toEqual([true, true, true, true]);
  expect(ratios.commands).toBeLessThanOrEqual(2);
  // 64 nodes of at most 100 entries, with Redis' defaults.
  expect(mostAtOnce).toBeGreaterThan(0);
  expect(mostAtOnce).toBeLessThanOrEqual(6_400);
  // Sub-requests, failures, results.
  expect(drops.at(-1)?.keysBehind).toBeGreaterThanOrEqual(2);
});
