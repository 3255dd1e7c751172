/**
 * Looks at every key there is.
 * @module-tag own-server
 */
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { example, exampleUrl } from '../support/examples.js';
import { testRedis } from '../support/redis.js';

/** What is left of a run but for callers, which go by themselves. */
async function left(redis: string): Promise<string[]> {
  const probe = new Redis(redis);
  const keys = await probe.keys('*');
  const forever: string[] = [];
  for (const key of keys) if ((await probe.pttl(key)) < 0) forever.push(key);
  await probe.quit();
  return forever;
}

const lines = (text: string) => text.trim().split('\n').sort();

test('the sample of a retry queue delivers what it can, and gives the rest up', async () => {
  const { url } = await testRedis();
  const { code, stdout, stderr } = await example(
    'retry-queue/retry-queue.mjs',
    [],
    await exampleUrl(url),
  );
  expect(code, stderr).toBe(0);
  const expected = Array.from({ length: 12 }, (_, i) => i + 1).map((number) => {
    if (number % 3 === 0) return `message ${number} given up after 4 failures: Error: 503 for ever`;
    return `message ${number} delivered at attempt ${number % 2 === 0 ? 2 : 1}`;
  });
  expect(lines(stdout)).toEqual(expected.sort());
  expect(await left(url)).toEqual([]);
});

test('the sample of a scheduler has every reminder, the one of the dead taker too', async () => {
  const { url } = await testRedis();
  const { code, stdout, stderr } = await example(
    'scheduler/scheduler.mjs',
    [],
    await exampleUrl(url),
  );
  expect(code, stderr).toBe(0);
  expect(lines(stdout)).toEqual([
    'call home, due after 400 ms',
    'go for a walk, due after 600 ms',
    'sleep, due after 400 ms',
    'taken and never removed: water the plants',
    'water the plants, due after 200 ms',
  ]);
  expect(await left(url)).toEqual([]);
});
