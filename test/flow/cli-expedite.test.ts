import { queueKeys } from '@piecework/protocol';
import { expect } from 'vitest';
import { test } from '../support/command-line.js';
import { connected, freshName } from '../support/given.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');

test('submit --expedite puts a delayed request that is due into its lane', async ({
  commandLine,
}) => {
  const { file, run, queue } = commandLine;
  const input = await file('two.txt', 'a\nb\n');
  const { client } = await connected();
  const length = () => client.llen(queueKeys(queue).lane(7));
  const flags = ['--run-at', '2001-01-31T12:00:00Z', '--priority', '7'];
  await run('submit', '--input', input, '--id', `${unique}-a`, ...flags);
  expect(await length()).toBe(0);
  await run('submit', '--input', input, '--id', `${unique}-b`, ...flags, '--expedite');
  expect(await length()).toBe(1);
  const shown = JSON.parse((await run('status', `${unique}-b`, '--json')).stdout);
  expect(shown).toMatchObject({ priority: 7, status: 'sealed' });
  for (const name of ['a', 'b']) await run('drop', `${unique}-${name}`);
  expect(await length()).toBe(0);
});
