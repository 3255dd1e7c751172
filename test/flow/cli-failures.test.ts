import { Admin } from 'piecework';
import { expect } from 'vitest';
import { jsonLines, runCli, saysIn, test } from '../support/command-line.js';
import { given, Hand, success } from '../support/given.js';

const thrown = (name: string) => JSON.stringify({ name, message: 'no\nand no' });

/** 0 succeeded, 1 and 2 failed. */
async function someFailed(queue: string) {
  const scene = await given.sealed({ queue, items: 3, limit: 3 });
  const hand = new Hand(scene);
  const [first, second, third] = await hand.hold(3);
  const { client } = scene.connection;
  await hand.trySettle([
    success(first!, '1'),
    { entry: second!.entry, kind: 'f', value: thrown('TypeError'), delayMs: 0 },
    { entry: third!.entry, kind: 'f', value: thrown('RangeError'), delayMs: 0 },
  ]);
  for (const index of [1, 2]) await client.hset(scene.request.keys.failed, `${index}:payload`, '7');
  await scene.queue.finish(scene.id, scene.generation, 'failed');
  return scene;
}

test('failures shows failures, of one error name or grouped, with payloads if asked for', async ({
  commandLine,
}) => {
  const { run, queue } = commandLine;
  const { id } = await someFailed(queue);
  expect((await run('failures', id)).stdout).toBe(
    '1  TypeError: no  (attempts 1, crashes 0)\n2  RangeError: no  (attempts 1, crashes 0)\n',
  );
  const error = { name: 'RangeError', message: 'no\nand no' };
  const second = { index: 2, attempts: 1, crashes: 0, error };
  const lines = async (...args: string[]) =>
    jsonLines((await run('failures', id, '--json', ...args)).stdout);
  expect(await lines('--error', 'RangeError')).toEqual([{ ...second, cursor: 'f3' }]);
  expect(await lines('--index', '2,7')).toEqual([{ ...second, cursor: 'f3' }]);
  expect((await run('failures', id, '--index', '7')).stdout).toBe('no such failures\n');
  expect(await lines('--cursor', 'f2', '--payload')).toEqual([
    { ...second, payload: 7, cursor: 'f3' },
  ]);
  expect(await lines('--group')).toEqual([
    {
      ...{ name: 'TypeError', message: 'no', count: 1 },
      example: { ...second, index: 1, error: { ...error, name: 'TypeError' } },
    },
    { name: 'RangeError', message: 'no', count: 1, example: second },
  ]);
  expect((await run('failures', id, '--group')).stdout).toMatch(
    /^error +count +first +message of the first\nTypeError +1 +1 +no\n/,
  );
  expect(await run('failures', id, '--group', '--cursor', 'f2')).toMatchObject({ code: 2 });
  expect(await run('failures', id, '--group', '--index', '2')).toMatchObject({ code: 2 });
  expect(await run('failures', `${id}-no`)).toMatchObject({ code: 1 });
});

test('failures and redrive say why there is nothing, of a request that was cancelled', async ({
  commandLine,
}) => {
  const { run, queue } = commandLine;
  const { id } = await given.sealed({ queue, items: 3 });
  expect(await run('cancel', id)).toMatchObject({ code: 0 });
  expect((await run('failures', id)).stdout).toBe('no failures; 3 were cancelled (cancel)\n');
  expect((await run('redrive', id)).stdout).toBe(
    `${id}: nothing runs again: nothing failed; 3 were cancelled, and a redrive does not run those\n`,
  );
  const { id: failed } = await someFailed(queue);
  expect((await run('redrive', failed, '--error', 'TypeEror')).stdout).toBe(
    `${failed}: nothing runs again: none of its 2 failures was selected\n`,
  );
});

test('errors shows the last attempts that failed in a queue', async ({ commandLine }) => {
  const { run, start, queue, file, connection } = commandLine;
  expect((await run('errors')).stdout).toBe('no errors\n');
  const handler = await file('fails.mjs', "export default () => { throw new TypeError('no'); };");
  const worker = start('worker', '--handler', handler);
  const input = await file('one.txt', 'a\n');
  const submitted = await run('submit', '--input', input, '--wait', '--json');
  expect(submitted.code).toBe(1);
  const { id } = JSON.parse(submitted.stdout) as { id: string };
  worker.kill('SIGTERM');
  await worker.finished;
  const [error, ...more] = jsonLines((await run('errors', '--json')).stdout);
  expect(error).toMatchObject({ requestId: id, index: 0, attempt: 1, name: 'TypeError' });
  expect(more).toEqual([]);
  expect((await run('errors')).stdout).toMatch(/^at +request +index +attempt +error +message/);
  await new Admin({ redis: connection, queue }).drop(id);
  expect((await run('errors')).stdout).toBe('no errors\n');
});

test('a submission that failed prints the commands that show its failures, with stacks', async ({
  commandLine,
}) => {
  const { run, start, queue, file, connection } = commandLine;
  const handler = await file('fails.mjs', "export default () => { throw new TypeError('no'); };");
  const worker = start('worker', '--handler', handler);
  // Otherwise the submission may first say that there is no worker.
  await saysIn(worker, 'stderr', /worker started/);
  const input = await file('one.txt', 'a\n');
  const { stderr } = await run('submit', '--input', input, '--wait');
  const [id = ''] = stderr.split(' ');
  expect(stderr).toContain(`piecework redrive ${id} --wait --queue ${queue}`);
  // The hint is a command that runs as it is.
  const [, hint = ''] = /piecework (failures \S+ --stack --queue \S+)/.exec(stderr) ?? [];
  expect((await runCli(hint.split(' '), { redis: commandLine.redis })).stdout).toMatch(
    /^0 {2}TypeError: no .*\n {4}at .*fails\.mjs:1:\d+/,
  );
  expect((await run('failures', id, '--stack', '--group')).code).toBe(2);
  worker.kill('SIGTERM');
  await worker.finished;
  await new Admin({ redis: connection, queue }).drop(id);
});

test('redrive runs failures again, and can wait for the completion', async ({ commandLine }) => {
  const { run, start, queue, file } = commandLine;
  const { id } = await someFailed(queue);
  const none = await run('redrive', id, '--error', 'NoSuchError', '--json');
  expect(JSON.parse(none.stdout)).toMatchObject({ id, redriven: 0 });
  const ended = await run('redrive', id, '--error', 'NoSuchError', '--wait');
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toContain(`${id} failed: 0 ran again, 2 failed\n`);
  const some = await run('redrive', id, '--index', '2,0', '--json');
  const { generation, redriven } = JSON.parse(some.stdout) as Record<string, number>;
  expect(redriven).toBe(1);
  expect(await run('redrive', id)).toMatchObject({ code: 1 });
  const worker = start('worker', '--handler', await file('h.mjs', 'export default (n) => n * 2;'));
  expect((await run('watch', id)).code).toBe(1);
  const rest = await run('redrive', id, '--wait', '--json');
  const outcome = JSON.parse(rest.stdout) as { generation: number };
  expect(outcome).toMatchObject({ id, status: 'succeeded', redriven: 1, counts: { failed: 0 } });
  expect(outcome.generation).toBeGreaterThan(generation as number);
  expect(rest.code).toBe(0);
  const results = jsonLines((await run('results', id, '--order', 'index')).stdout);
  expect(results.map(({ value }) => value)).toEqual([1, 14, 14]);
  worker.kill('SIGTERM');
  await worker.finished;
});
