import { expect, test } from 'vitest';
import { example, exampleUrl } from '../support/examples.js';
import { testRedis } from '../support/redis.js';

const EXAMPLE = 'id-queue/id-queue.mjs';

test('the example completes every picture, also the one that a consumer died with', async () => {
  const { url } = await testRedis();
  const redis = await exampleUrl(url);
  // So long that nobody but the one that dies keeps a picture for it, also when the machine stands still.
  const args = ['--ids', '30', '--timeout-ms', '5000', '--redis', redis];
  const { code, stdout, stderr } = await example(EXAMPLE, args, '');
  expect(code, stderr).toBe(0);
  const handled = [...stdout.matchAll(/handled (\d+)(, attempt 2)?$/gm)];
  expect(handled.map(([, id]) => Number(id)).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 30 }, (_, i) => i),
  );
  expect(handled.filter(([, , again]) => again)).toHaveLength(1);
  expect(stdout).toMatch(/^30 completed, 3 of them failed: picture \d*7 cannot be read$/m);
});

test('the example explains wrong usage', async () => {
  const { url } = await testRedis();
  const { code, stdout, stderr } = await example(EXAMPLE, ['--ids', '0'], await exampleUrl(url));
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/^error: ./);
});
