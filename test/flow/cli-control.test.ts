import { expect } from 'vitest';
import { test } from '../support/command-line.js';
import { freshName } from '../support/given.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');

test('pause, update, resume and cancel change the request and print what they did', async ({
  commandLine,
}) => {
  const { file, run } = commandLine;
  const id = `${unique}-a`;
  await run('submit', '--input', await file('three.txt', 'a\nb\nc\n'), '--id', id);
  expect(JSON.parse((await run('pause', id, '--json')).stdout)).toEqual({ id, paused: true });
  expect((await run('status', id)).stdout).toMatch(/^why +it is paused: resume it$/m);
  const flags = ['--limit', '3', '--priority', '9', '--tolerated-failures', '1'];
  expect(JSON.parse((await run('update', id, ...flags, '--json')).stdout)).toEqual({
    id,
    limit: 3,
    priority: 9,
    toleratedFailures: 1,
  });
  expect(JSON.parse((await run('status', id, '--json')).stdout)).toMatchObject({
    limit: 3,
    priority: 9,
  });
  expect((await run('update', id, '--limit', '4')).stdout).toBe(`${id} updated\n`);
  const lifted = await run('update', id, '--limit', 'none', '--json');
  expect(JSON.parse(lifted.stdout)).toEqual({ id, limit: null });
  expect((await run('status', id)).stdout).toMatch(/^limit +none$/m);
  expect((await run('resume', id)).stdout).toBe(`${id} resumed\n`);
  const cancelled = { id, status: 'complete', outcome: 'cancelled' };
  expect(JSON.parse((await run('cancel', id, '--json')).stdout)).toEqual(cancelled);
  expect((await run('cancel', id)).stdout).toBe(`${id} is complete (cancelled)\n`);
  const refused = await run('pause', id, '--json');
  expect({ ...refused, error: JSON.parse(refused.stderr).error.code }).toMatchObject({
    code: 1,
    error: 'ENDED',
  });
});

test('status and list say why a request waits', async ({ commandLine }) => {
  const { file, run } = commandLine;
  const id = `${unique}-still`;
  await run('submit', '--input', await file('three.txt', 'a\nb\nc\n'), '--id', id);
  const said = async () => {
    const { why, waitingFor } = JSON.parse((await run('status', id, '--json')).stdout);
    const text = (await run('status', id)).stdout;
    expect(text).toContain(`why         ${why}\n`);
    const lines = (await run('list')).stdout.split('\n');
    const at = lines.findIndex((line) => line.startsWith(id));
    const [listed, below] = lines.slice(at);
    expect(below).toBe(`  ${why}`);
    return [waitingFor, why, / {2}(\D+?) {2}/.exec(listed ?? '')?.[1]];
  };
  expect(await said()).toEqual([
    'worker',
    'its queue has no worker: start one, as `new Worker` or `piecework worker`: it will run then',
    'no worker',
  ]);
  await run('pause', '--queue-wide');
  expect(await said()).toEqual(['queue', 'its queue is paused: resume the queue', 'queue paused']);
  await run('resume', '--queue-wide');
  await run('pause', id);
  expect(await said()).toEqual(['resume', 'it is paused: resume it', 'paused']);
  await run('drop', id);
});

test('pause and resume with --queue-wide act on the whole queue', async ({ commandLine }) => {
  const { run, queue } = commandLine;
  const paused = await run('pause', '--queue-wide', '--json');
  expect(JSON.parse(paused.stdout)).toEqual({ queue, paused: true });
  expect((await run('resume', '--queue-wide')).stdout).toBe(`queue ${queue} resumed\n`);
  const timed = await run('pause', '--queue-wide', '--for-ms', '1');
  expect(timed.stdout).toBe(`queue ${queue} paused for 1 ms\n`);
  await run('resume', '--queue-wide');
});

test('flags that contradict each other are refused', async ({ commandLine: { run } }) => {
  for (const args of [
    ['pause'],
    ['resume'],
    ['pause', 'x', '--queue-wide'],
    ['resume', 'x', '--queue-wide'],
    ['pause', 'x', '--for-ms', '5'],
    ['update', 'x'],
  ]) {
    const refused = await run(...args);
    expect({ args, code: refused.code }).toEqual({ args, code: 2 });
  }
});
