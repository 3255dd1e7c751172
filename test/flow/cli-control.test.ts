import { expect } from 'vitest';
import { test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { hasTerminals, startOnTerminal } from '../support/terminal.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');

test('pause, update, resume and cancel change the request and print what they did', async ({
  commandLine,
}) => {
  const { file, run } = commandLine;
  const id = `${unique}-a`;
  await run('submit', '--input', await file('three.txt', 'a\nb\nc\n'), '--id', id);
  expect(JSON.parse((await run('pause', id, '--json')).stdout)).toEqual({
    ...{ id, paused: true, changed: true },
  });
  expect((await run('pause', id)).stdout).toBe(`${id} is paused already\n`);
  expect((await run('status', id)).stdout).toMatch(/^why +it is paused. Resume it$/m);
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
  const resumed = await run('resume', id);
  expect(resumed.stdout).toMatch(new RegExp(`^${id} resumed; its queue has no worker`));
  const cancelled = { id, status: 'complete', outcome: 'cancelled' };
  expect(JSON.parse((await run('cancel', id, '--json')).stdout)).toEqual(cancelled);
  expect((await run('cancel', id)).stdout).toBe(`${id} is complete (cancelled)\n`);
  const refused = await run('pause', id, '--json');
  expect({ ...refused, error: JSON.parse(refused.stderr).error.code }).toMatchObject({
    code: 1,
    error: 'ENDED',
  });
});

test('resume says of a request that is not paused until when it waits', async ({ commandLine }) => {
  const { file, run, redis, queue } = commandLine;
  const id = `${unique}-later`;
  const input = await file('one.txt', 'a\n');
  await run('submit', '--input', input, '--id', id, '--delay-ms', '3600000');
  const resumed = await run('resume', id);
  expect(resumed).toMatchObject({ code: 0, stderr: '' });
  expect(resumed.stdout).toMatch(
    new RegExp(
      `^${id} is not paused; its start is delayed until \\S+ \\(in (60|59) min\\)\\. Wait`,
    ),
  );
  expect(JSON.parse((await run('resume', id, '--json')).stdout)).toEqual({
    ...{ id, paused: false, changed: false },
  });
  await run('pause', id);
  expect((await run('resume', id)).stdout).toContain(`${id} resumed; its start is delayed until`);
  if (hasTerminals) {
    const { said, finished } = startOnTerminal(['resume', id, '--queue', queue], { redis });
    await finished;
    const lines = said.stdout.trimEnd().split(/\r?\n/);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
    expect(lines.join(' ')).toMatch(/ Wait, or cancel it and submit it without the delay$/);
  }
  await run('drop', id);
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
    'its queue has no worker. Start one, as `new Worker` or `piecework worker`: it will run then',
    'no ready worker',
  ]);
  await run('pause', '--queue-wide');
  expect(await said()).toEqual(['queue', 'its queue is paused. Resume the queue', 'queue paused']);
  await run('resume', '--queue-wide');
  await run('pause', id);
  expect(await said()).toEqual(['resume', 'it is paused. Resume it', 'paused']);
  await run('drop', id);
});

test('pause and resume with --queue-wide act on the whole queue', async ({ commandLine }) => {
  const { run, queue } = commandLine;
  const paused = await run('pause', '--queue-wide', '--json');
  expect(JSON.parse(paused.stdout)).toEqual({ queue, paused: true, pausedUntil: 0 });
  const shorter = await run('pause', '--queue-wide', '--for-ms', '1');
  expect(shorter.stdout).toBe(`queue ${queue} is paused until it is resumed\n`);
  expect((await run('resume', '--queue-wide')).stdout).toBe(`queue ${queue} resumed\n`);
  expect((await run('resume', '--queue-wide')).stdout).toBe(`queue ${queue} is not paused\n`);
  const timed = await run('pause', '--queue-wide', '--for-ms', '1');
  expect(timed.stdout).toMatch(new RegExp(`^queue ${queue} is paused until \\d{4}-\\S+Z\n$`));
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
