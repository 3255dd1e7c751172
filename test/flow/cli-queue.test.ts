import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { QueueCommands, queueKeys, shardOf } from '@piecework/protocol';
import { Piecework } from 'piecework';
import { expect, onTestFinished } from 'vitest';
import { CommandLines, cli, STARTS } from '../support/cli.js';
import { jsonLines, saysIn, test } from '../support/command-line.js';
import { freshName, given, Hand, success } from '../support/given.js';
import { until } from '../support/until.js';

// Ids of requests are used by nobody else, whatever server this is.
const unique = freshName('request');

const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));

interface Listed {
  id: string;
  status: string;
  outcome?: string;
  counts: { total: number; succeeded: number };
}

test('list shows open requests, ended ones, or both', async ({ commandLine }) => {
  const { file, run, start } = commandLine;
  const input = await file('two.txt', 'a\nb\n');
  expect((await run('list')).stdout).toMatch(/^no open requests in the queue /);
  for (const id of [`${unique}-done-1`, `${unique}-done-2`])
    await run('submit', '--input', input, '--id', id);
  const worker = start('worker', '--handler', handler);
  for (const id of [`${unique}-done-1`, `${unique}-done-2`])
    expect((await run('watch', id)).code).toBe(0);
  worker.kill('SIGTERM');
  await worker.finished;
  await run('submit', '--input', input, '--id', `${unique}-waits`, '--priority', '7');

  const ids = async (...args: string[]) =>
    jsonLines<Listed>((await run('list', '--json', ...args)).stdout).map(({ id }) => id);
  expect(await ids()).toEqual([`${unique}-waits`]);
  expect((await ids('--state', 'ended')).sort()).toEqual([`${unique}-done-1`, `${unique}-done-2`]);
  expect((await ids('--state', 'all')).sort()).toEqual([
    `${unique}-done-1`,
    `${unique}-done-2`,
    `${unique}-waits`,
  ]);
  const [waits] = jsonLines<Listed>((await run('list', '--json')).stdout);
  expect(waits).toMatchObject({ status: 'sealed', priority: 7, counts: { total: 2, ready: 2 } });
  const table = (await run('list', '--state', 'all')).stdout.split('\n');
  expect(table[0]).toMatch(/^request\s+status\s+progress\s+priority\s+limit/);
  expect(table[1]).toMatch(
    /-waits\s+no ready worker\s+░{10}\s+0 %\s+7\s+none\s+2\s+0\s+0\s+0\s+0\s+2\s+(just now|\d+ s ago)$/,
  );
});

test('list shows more requests than one call reads, each once', async ({ commandLine }) => {
  const { run, connection, queue } = commandLine;
  await using pw = new Piecework({ redis: connection.client, queue });
  const expected = Array.from({ length: 137 }, (_, i) => `${unique}-many-${i}`).sort();
  await Promise.all(expected.map((id) => pw.submit(['a'], { id })));
  const listed = jsonLines<Listed>((await run('list', '--json')).stdout).map(({ id }) => id);
  expect(listed.sort()).toEqual(expected);
});

test('workers shows the workers of the queue, and none when they have ended', async ({
  commandLine: { run, start },
}) => {
  expect((await run('workers')).stdout).toBe('no workers\n');
  const fleet = start('worker', '--handler', handler, '--processes', '2', '--concurrency', '7');
  await saysIn(fleet, 'stderr', /worker processes started/);
  const found = jsonLines((await run('workers', '--json')).stdout);
  expect(found).toHaveLength(2);
  for (const worker of found) expect(worker).toMatchObject({ concurrency: 7, tasks: '*' });
  expect((await run('workers')).stdout).toMatch(/^worker\s+state\s+running\s+longest\s+tasks/);
  fleet.kill('SIGTERM');
  expect((await fleet.finished).code).toBe(0);
  expect((await run('workers')).stdout).toBe('no workers\n');
});

test('workers shows for how long a worker has been silent, and hides its outdated values', async ({
  commandLine: { run, connection, queue },
}) => {
  const { workers, workerInfo } = queueKeys(queue);
  const { client } = connection;
  const longest = [{ requestId: 'gone', index: 1, attempt: 1, startedAt: Date.now() - 60_000 }];
  const info = { host: 'h', pid: 7, concurrency: 4, running: 3, tasks: '*', startedAt: 0, longest };
  await client.hset(workerInfo, 'h-7-abcdefgh', JSON.stringify(info));
  await client.zadd(workers, Date.now() - 45_000, 'h-7-abcdefgh');
  const [, row = ''] = (await run('workers')).stdout.split('\n');
  expect(row).toMatch(/^h-7-abcdefgh +silent 4\d s +\? +\? +all /);
  expect(jsonLines((await run('workers', '--json')).stdout)).toMatchObject([{ silent: true }]);
  await client.hset(workerInfo, 'h-7-abcdefgh', JSON.stringify({ ...info, restMs: 50_000 }));
  await client.zadd(workers, Date.now() - 45_000, 'h-7-abcdefgh');
  expect((await run('workers')).stdout).toMatch(/^h-7-abcdefgh +works +3 of 4 /m);
  await new QueueCommands(connection, queue).deregister('h-7-abcdefgh');
});

test('workers shows for how long a handler had run at the last sign of life, not since then', async ({
  commandLine: { run, connection, queue },
}) => {
  const { workers, workerInfo } = queueKeys(queue);
  const { client } = connection;
  const seenAt = Date.now() - 1_000;
  const longest = [{ requestId: 'short', index: 1, attempt: 1, startedAt: seenAt - 30 }];
  const info = { host: 'h', pid: 7, concurrency: 4, running: 3, tasks: '*', startedAt: 0, longest };
  await client.hset(workerInfo, 'h-7-abcdefgh', JSON.stringify(info));
  await client.zadd(workers, seenAt, 'h-7-abcdefgh');
  const [, row = ''] = (await run('workers')).stdout.split('\n');
  expect(row).toMatch(/^h-7-abcdefgh +works +3 of 4 +30 ms short:1 .* (just now|\d+ s ago)$/);
  await new QueueCommands(connection, queue).deregister('h-7-abcdefgh');
});

test('list says when a delayed request is due, and shows what is read ahead as waiting', async ({
  commandLine: { file, run, queue },
}) => {
  const input = await file('three.txt', 'a\nb\nc\n');
  await run('submit', '--input', input, '--id', `${unique}-due`, '--delay-ms', '7200000');
  const rowOf = async (id: string) =>
    (await run('list')).stdout.split('\n').find((line) => line.startsWith(id));
  expect(await rowOf(`${unique}-due`)).toMatch(/ {2}due in 1 h 59 min {2}/);
  await run('drop', `${unique}-due`);

  const id = `${unique}-ahead`;
  const scene = await given.sealed({ queue, id, items: 9, limit: 2 });
  const hand = new Hand(scene);
  await hand.hold(2);
  await hand.read(5);
  const listed = await run('list');
  expect(listed.stdout).toMatch(
    /^request +status +progress +priority +limit +waiting +running +delayed/,
  );
  expect(await rowOf(id)).toMatch(/ sealed +░{10} +0 % +50 +2 +7 +2 +0 +0 +0 +9 /);
  const { stdout } = await run('status', id);
  expect(stdout).toContain('\n  inFlight  7 (at most 2 run; workers read ahead)\n');
  await run('drop', id);
});

test('list shows silent workers and producers, and status says what follows', async ({
  commandLine: { run, queue, connection },
}) => {
  const { client } = connection;
  const inMs = async (ms: number) => {
    const [seconds] = (await client.time()) as unknown as [string];
    return Number(seconds) * 1_000 + ms;
  };
  const rowOf = async (id: string) =>
    (await run('list')).stdout.split('\n').find((line) => line.startsWith(id));

  const left = await given.sealed({ queue, id: `${unique}-left`, items: 5, limit: 5 });
  await new Hand(left, 'dead').hold(3);
  await client.hset(left.request.keys.request, 'lease:dead', await inMs(15_000));
  expect(await rowOf(left.id)).toMatch(/ {2}worker silent {2}/);
  expect((await run('status', left.id)).stdout).toMatch(
    /^why +3 are on a worker last seen \d+ s ago; taken over in about \d+ s\. Start another worker/m,
  );
  // Others run the rest.
  await new Hand(left, 'alive').hold(2, []);
  expect(await rowOf(left.id)).toMatch(/ {2}sealed {2}/);
  await run('drop', left.id);

  const lease = { producerLeaseMs: 600_000, onProducerLost: 'cancel' } as const;
  const open = await given.filled({ queue, id: `${unique}-open`, items: 1, ...lease });
  expect((await run('status', open.id)).stdout).toMatch(
    /^producer +last seen \d+ s ago; if it stays silent, the request is cancelled in about \d+ s$/m,
  );
  const hand = new Hand(open);
  const [entry] = await hand.hold(1);
  await hand.settle([success(entry!)]);
  expect(await rowOf(open.id)).toMatch(/ {2}open {2}/);
  await client.hset(open.request.keys.request, 'producerUntil', await inMs(10_000));
  expect(await rowOf(open.id)).toMatch(/ {2}producer silent {2}/);
  expect((await run('status', open.id)).stdout).toMatch(
    /^why +all that was added .* last seen \d+ min ago; cancelled in about \d+ s\. Cancel the request/m,
  );
  await client.hset(open.request.keys.request, 'producerUntil', await inMs(-5_000));
  expect((await run('status', open.id)).stdout).toMatch(
    /^why +all that was added .* last seen \d+ min ago; cancelled when a worker runs, or somebody waits for it\. Cancel/m,
  );
  await run('drop', open.id);
});

test('results says on standard error when a request ended early', async ({
  commandLine: { file, run },
}) => {
  const id = `${unique}-early`;
  await run('submit', '--input', await file('three.txt', 'a\nb\nc\n'), '--id', id);
  await run('cancel', id);
  expect(await run('results', id)).toMatchObject({
    code: 0,
    stdout: '',
    stderr: `${id} ended early, as it was cancelled; 3 of 3 sub-requests have no result\n`,
  });
  await run('drop', id);
});

test('watch follows a request to its end, and its exit code is the outcome', async ({
  commandLine: { file, run, start },
}) => {
  const input = await file('mixed.txt', `${'wait:20\n'.repeat(60)}bad\n`);
  await run('submit', '--input', input, '--id', `${unique}-mixed`, '--limit', '4');
  const watching = start('watch', `${unique}-mixed`, '--json', '--every-ms', '100');
  await saysIn(watching, 'stdout', /"ready":61/);
  start('worker', '--handler', handler);
  const ended = await watching.finished;
  expect(ended.code).toBe(1);
  const reports = jsonLines<{ status: string; counts: { failed: number; succeeded: number } }>(
    ended.stdout,
  );
  expect(reports.length).toBeGreaterThan(1);
  const last = reports.at(-1);
  // Reports say where the request is; the outcome is told by the exit code.
  expect(last).toMatchObject({ status: 'complete', counts: { succeeded: 60, failed: 1 } });
  const again = await run('watch', `${unique}-mixed`);
  expect(again.code).toBe(1);
  expect(again.stderr).toContain(`${unique}-mixed failed: 60 of 61 succeeded`);
  expect((await run('watch', `${unique}-no-such-request`)).code).toBe(1);
});

test('watch without a request shows the queue until it is stopped', async ({
  commandLine: { file, run, start },
}) => {
  const input = await file('one.txt', 'a\n');
  const watching = start('watch', '--json', '--every-ms', '100');
  await saysIn(watching, 'stdout', /"open":0/);
  await run('submit', '--input', input, '--id', `${unique}-seen`);
  await saysIn(watching, 'stdout', /"open":1.*"id":"[^"]+-seen"/);
  watching.kill('SIGINT');
  expect((await watching.finished).code).toBe(0);
  const plain = start('watch');
  await saysIn(plain, 'stdout', /requests: 1 open, 0 succeeded, 0 failed · 0 workers[\s\S]*seen/);
  plain.kill('SIGTERM');
  expect((await plain.finished).code).toBe(0);
});

test('complete prints a script for the shell, and completes commands, flags, words and paths', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = await cli(['complete', shell]);
    expect(script.code).toBe(0);
    expect(script.stdout).toContain('piecework');
  }
  const offered = async (...words: string[]) =>
    (
      await cli(['complete', '--', ...words], {
        cwd: fileURLToPath(new URL('..', import.meta.url)),
      })
    ).stdout
      .split('\n')
      .map((line) => line.split('\t')[0]);
  expect(await offered('wo')).toEqual(expect.arrayContaining(['worker', 'workers']));
  expect(await offered('submit', '--pri')).toContain('--priority');
  expect(await offered('results', '--order', '')).toEqual(
    expect.arrayContaining(['index', 'completion']),
  );
  expect(await offered('run', '--handler', 'support/programs/h')).toContain(
    'support/programs/handler.mjs',
  );
});

test('the script for bash needs no other package, and runs nothing of what was typed', async ({
  commandLine: { file, folder },
}) => {
  const program = fileURLToPath(new URL('../../packages/cli/bin/piecework.js', import.meta.url));
  const command = await file('piecework', `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`);
  await chmod(command, 0o755);
  const complete = async (...words: string[]) => {
    const script = `
      source <(piecework complete bash); source <(piecework complete bash)
      COMP_WORDS=(piecework "$@"); COMP_CWORD=$#
      _piecework; printf '%s\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      ['--noprofile', '--norc', '-c', script, 'bash', ...words],
      { env: { PATH: `${folder}:/usr/bin:/bin` } },
    );
    expect(stderr).toBe('');
    return stdout.trim().split('\n');
  };
  expect(await complete('wo')).toEqual(['worker', 'workers']);
  expect(await complete('list', '--state', 'o')).toEqual(['open']);
  const trap = join(folder, 'trap');
  expect(await complete('worker', '--exec', `echo $(touch ${trap})`, '--ha')).toEqual([
    '--handler',
  ]);
  expect(existsSync(trap)).toBe(false);
});

test('the help of every command has examples of that command', async () => {
  const lines = new CommandLines();
  onTestFinished(() => lines.close());
  const { stdout } = await lines.run(['--help']);
  const names = [...stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name as string);
  for (const name of names.filter((one) => one !== 'help')) {
    const help = (await lines.run([name, '--help'])).stdout;
    const examples = help.split('Examples:\n')[1]?.match(/piecework [a-z]+/g) ?? [];
    expect(examples.length, name).toBeGreaterThan(0);
    expect(
      examples.some((example) => example === `piecework ${name}`),
      name,
    ).toBe(true);
  }
});

test('a message names the queue with another number of shards when this one is empty', async ({
  commandLine,
}) => {
  const { file, run } = commandLine;
  const input = await file('shards.txt', 'a\n');
  const says = (count: string) =>
    new RegExp(`^the queue \\S+${count} has open requests: [1-9]`, 'm');
  await run('submit', '--input', input, '--id', `${unique}-whole`);
  const list = await run('list', '--shards', '4');
  expect(list.stdout).toMatch(/^no open requests in the queue \S+ \(4 shards were read\); /);
  expect(list.stdout).toMatch(says(''));
  expect((await run('workers', '--shards', '4')).stdout).toMatch(/^no workers\nthe queue /);
  expect((await run('doctor', '--shards', '4')).stdout).toMatch(
    /^warning\s+queue\s+nothing is open in 4 shards of \S+, and the queue \S+ has open requests: 1/m,
  );
  expect((await run('doctor')).stdout).not.toContain('nothing is open in');
  await run('drop', `${unique}-whole`);
  expect((await run('list')).stdout).toMatch(/^no open requests in [^\n]*\n$/);

  const names = Array.from({ length: 100 }, (_, n) => `${unique}-part-${n}`);
  const inFirst = names.find((id) => shardOf(id, 2) === 0) ?? '';
  await run('submit', '--input', input, '--id', inFirst, '--shards', '2');
  expect((await run('list')).stdout).toMatch(says('\\.0'));
  await run('drop', inFirst, '--shards', '2');
});

test('a queue of several shards is one queue for every command', async ({ commandLine }) => {
  const { file, run, start, redis } = commandLine;
  const input = await file('two.txt', 'a\nb\n');
  const shards = ['--shards', '3'];
  const ids = ['a', 'b', 'c'].map((name) => `${unique}-shard-${name}`);
  const ofAll = (...command: string[]) =>
    Promise.all(ids.map((id) => run(...command, id, ...shards)));
  await ofAll('submit', '--input', input, '--id');
  const listed = jsonLines<Listed>((await run('list', '--json', ...shards)).stdout);
  expect(listed.map(({ id }) => id).sort()).toEqual(ids);
  const worker = start('worker', '--handler', handler, '--processes', '2', ...shards);
  for (const { code } of await ofAll('watch')) expect(code).toBe(0);
  const doctor = await run('doctor', '--json', ...shards);
  const checks = jsonLines<{ check: string; what: string }>(doctor.stdout);
  expect(checks.filter(({ check }) => check === 'queue')).toHaveLength(3);
  await until(async () => {
    const workers = await run('workers', '--json', ...shards);
    return jsonLines(workers.stdout).length === 2;
  }, STARTS);
  worker.kill('SIGTERM');
  await worker.finished;
  await ofAll('drop');
  const refused = await run('list', '--shards', '65');
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--shards') });
  // Before a server or a process is started.
  const long = ['--queue', 'q'.repeat(128), '--exec', 'cat', ...shards];
  for (const command of [
    ['run', '--input', '-'],
    ['worker', '--processes', '2'],
  ])
    expect(await cli([...command, ...long], { redis })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^piecework: queue: .* at most 126 characters$/m),
    });
}, 120_000);
