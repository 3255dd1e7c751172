/**
 * Looks at every key there is.
 * @module-tag own-server
 */
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { example, exampleUrl } from '../support/examples.js';
import { testRedis } from '../support/redis.js';

test('the example of delayed tasks runs each when it is due, but for the one taken back', async () => {
  const redis = (await testRedis()).url;
  const { code, stdout, stderr } = await example(
    'delayed-tasks/delayed-tasks.mjs',
    ['--redis', await exampleUrl(redis)],
    '',
  );
  expect(code, stderr).toBe(0);
  const printed = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const reminded = printed.flatMap(({ remind }) => remind ?? []);
  expect(reminded).toEqual(['Cid', 'Bob', 'Ann']);
  expect(printed.filter(({ alarm }) => alarm)).toMatchObject([{ alarm: 'the door', attempt: 2 }]);
  for (const { id } of printed) expect(stderr).toContain(`${id} succeeded`);
  expect(stderr.match(/^\w[\w-]{20} cancelled$/m)).not.toBeNull();
  const wrong = await example('delayed-tasks/delayed-tasks.mjs', ['--redis', 'x'], redis);
  expect(wrong).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/^error: ./) });
  const client = new Redis(redis);
  const expiries = await Promise.all((await client.keys('*')).map((key) => client.pttl(key)));
  client.disconnect();
  expect(Math.min(...expiries)).toBeGreaterThan(0);
});
