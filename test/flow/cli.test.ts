/**
 * Looks at every key there is, and uses the default queue.
 * @module-tag own-server
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection } from '@piecework/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { asEverybody, nobodyDenied } from '../support/acl.js';
import { cli, STARTS, startCli } from '../support/cli.js';
import { runCli } from '../support/command-line.js';
import { nodesOf } from '../support/flow.js';
import { allKeys } from '../support/own-keys.js';
import { testUrl } from '../support/redis.js';
import { until } from '../support/until.js';

const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));
let redis: string;
let connection: Connection;
let folder: string;

beforeAll(async () => {
  const url = await testUrl();
  connection = Connection.open(url);
  await connection.check();
  redis = await asEverybody(url, nodesOf(connection));
  folder = await mkdtemp(join(tmpdir(), 'piecework-cli-'));
});
afterAll(async () => {
  await nobodyDenied(nodesOf(connection));
  await connection.close();
  await rm(folder, { recursive: true, force: true });
});
// Everything that these commands submit is dropped in the end: only tombstones may be left.
afterEach(async () => {
  const probe = connection.client;
  for (const key of await allKeys(probe)) {
    expect(key).toMatch(/^request:/);
    expect(await probe.hget(key, 'status')).toBe('dropped');
    expect(await probe.pttl(key)).toBeGreaterThan(0);
  }
});

const linesOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .filter(Boolean)
    .map(
      (line) =>
        JSON.parse(line) as {
          index: number;
          status: string;
          value?: unknown;
          error?: { name: string; message: string };
        },
    );

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

const numbers = (n: number) => Array.from({ length: n }, (_, i) => `${i}\n`).join('');

test('run writes every result once, in input order, and leaves nothing on the server', async () => {
  const input = await file('numbers.ndjson', numbers(5_000));
  const out = join(folder, 'numbers.out');
  const ended = await cli(
    [
      'run',
      '--input',
      input,
      '--split',
      'ndjson',
      '--handler',
      handler,
      '--processes',
      '2',
      '--concurrency',
      '20',
      '--limit',
      '40',
      '--out',
      out,
      '--json',
    ],
    { redis },
  );
  expect(ended.stderr).toBe('');
  expect(ended.code).toBe(0);
  const [summary] = ended.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(summary).toMatchObject({
    status: 'succeeded',
    counts: { total: 5_000, succeeded: 5_000 },
  });
  const results = linesOf(await readFile(out, 'utf8'));
  expect(results.map(({ index }) => index)).toEqual(Array.from({ length: 5_000 }, (_, i) => i));
  expect(results.every(({ index, value }) => value === 2 * index)).toBe(true);
});

test('run starts a Redis of its own when none is given, and reads standard input', {
  tags: 'processes',
}, async () => {
  const ended = await cli(['run', '--input', '-', '--handler', handler, '--out', '-'], {
    input: 'one\ntwo\nthree\n',
  });
  expect(ended.code, ended.stderr).toBe(0);
  expect(linesOf(ended.stdout)).toEqual([
    { index: 0, status: 'succeeded', value: 'one' },
    { index: 1, status: 'succeeded', value: 'two' },
    { index: 2, status: 'succeeded', value: 'three' },
  ]);
});

test('a sub-request that fails makes the exit code 1 and stands in the results with its error', async () => {
  const input = await file('bad.txt', 'good\nbad\ngood\n');
  const id = 'with-a-bad-one';
  const args = ['run', '--input', input, '--handler', handler, '--out', '-', '--id', id];
  const ended = await runCli(args, { redis });
  await runCli(['drop', id], { redis });
  expect(ended.code).toBe(1);
  const results = linesOf(ended.stdout);
  expect(results.map(({ status }) => status)).toEqual(['succeeded', 'failed', 'succeeded']);
  expect(results[1]?.error).toMatchObject({ name: 'TypeError', message: 'this one is bad' });
  expect(ended.stderr).toContain('2 succeeded, 1 failed of 3');
});

test('an empty input completes at once, where that is allowed', async () => {
  const input = await file('empty.txt', '');
  const flags = ['--input', input, '--handler', handler, '--allow-empty', '--json'];
  const ended = await runCli(['run', ...flags], { redis });
  expect(ended.code).toBe(0);
  expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'succeeded', counts: { total: 0 } });
});

test('a line that is not JSON is named, and the request is cancelled', async () => {
  const input = await file('broken.ndjson', '1\n2\n{oops\n4\n');
  const ended = await cli(
    [
      'run',
      '--input',
      input,
      '--split',
      'ndjson',
      '--handler',
      handler,
      '--json',
      '--id',
      'broken',
    ],
    { redis },
  );
  expect(ended.code).toBe(1);
  expect(JSON.parse(ended.stderr).error).toMatchObject({ code: 'PAYLOAD' });
  expect(ended.stderr).toContain('line 3');
  await runCli(['drop', 'broken'], { redis });
});

test('a handler module that does not load ends the run with its message', async () => {
  const broken = await file('broken-handler.mjs', 'throw new Error("cannot load me");');
  const input = await file('one.txt', 'one\n');
  const ended = await runCli(['run', '--input', input, '--handler', broken], { redis });
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain('cannot load me');
});

test('Ctrl-C lets what runs end, cancels the rest, and exits 130', async () => {
  const begun = await file('begun', '');
  const slow = await file(
    'slow-handler.mjs',
    `import { appendFile } from 'node:fs/promises';
    import { setTimeout as sleep } from 'node:timers/promises';
    export default async () => {
      await appendFile(${JSON.stringify(begun)}, 'one\\n');
      await sleep(300);
    };`,
  );
  const lines = async () => (await readFile(begun, 'utf8')).split('one').length - 1;
  const input = await file('slow.txt', 'x\n'.repeat(500));
  const out = join(folder, 'slow.out');
  const run = startCli(
    ['run', '--input', input, '--handler', slow, '--concurrency', '4', '--out', out, '--json'],
    { redis },
  );
  await until(async () => (await lines()) >= 4, { what: 'four sub-requests run', ...STARTS });
  run.child.kill('SIGINT');
  const ended = await run.finished;
  expect(ended.code).toBe(130);
  const { status, counts } = JSON.parse(ended.stdout);
  expect(status).toBe('cancelled');
  expect(counts.succeeded).toBe(await lines());
  expect(counts.cancelled).toBeGreaterThan(0);
  expect(counts.succeeded + counts.cancelled).toBe(counts.total);
  expect(linesOf(await readFile(out, 'utf8'))).toHaveLength(counts.succeeded);
});

test('submit, worker, status, results and drop work together', async () => {
  const queue = 'together';
  const worker = startCli(
    ['worker', '--handler', handler, '--queue', queue, '--processes', '2', '--concurrency', '5'],
    { redis },
  );
  const input = await file('together.txt', 'a\nb\nbad\nd\ne\n');
  const submitted = await cli(
    [
      'submit',
      '--queue',
      queue,
      '--input',
      input,
      '--split',
      'chunk:1',
      '--id',
      'together-1',
      '--metadata',
      '{"who":"me"}',
      '--wait',
      '--json',
    ],
    { redis },
  );
  expect(submitted.code).toBe(0);
  expect(JSON.parse(submitted.stdout)).toMatchObject({ id: 'together-1', status: 'succeeded' });

  const lines = await cli(
    ['submit', '--queue', queue, '--input', input, '--id', 'together-2', '--wait', '--json'],
    { redis },
  );
  expect(lines.code).toBe(1);

  const status = await runCli(['status', 'together-2', '--queue', queue, '--json'], { redis });
  expect(JSON.parse(status.stdout)).toMatchObject({
    status: 'complete',
    outcome: 'failed',
    counts: { total: 5, succeeded: 4, failed: 1, ready: 0, inFlight: 0, delayed: 0, cancelled: 0 },
  });
  expect((await runCli(['status', 'together-1', '--queue', queue], { redis })).stdout).toContain(
    'complete (succeeded)',
  );

  const good = await runCli(['results', 'together-2', '--queue', queue], { redis });
  expect(linesOf(good.stdout).map(({ value }) => value)).toEqual(['a', 'b', 'd', 'e']);
  const all = await runCli(
    ['results', 'together-2', '--queue', queue, '--failed', '--cursor', 'i2'],
    { redis },
  );
  expect(linesOf(all.stdout).map(({ index, status: how }) => [index, how])).toEqual([
    [2, 'failed'],
    [3, 'succeeded'],
    [4, 'succeeded'],
  ]);

  for (const id of ['together-1', 'together-2']) {
    expect((await runCli(['drop', id, '--queue', queue], { redis })).code).toBe(0);
  }
  const gone = await runCli(['status', 'together-1', '--queue', queue, '--json'], { redis });
  expect(gone.code).toBe(1);
  expect(JSON.parse(gone.stderr).error.code).toBe('DROPPED');
  worker.child.kill('SIGTERM');
  expect((await worker.finished).code).toBe(0);
});

test('worker processes end when their parent is killed', async () => {
  const queue = 'orphans';
  const fleet = startCli(['worker', '--handler', handler, '--queue', queue, '--processes', '2'], {
    redis,
  });
  await until(async () => (await connection.client.zcard(`{${queue}}:workers`)) === 2, {
    what: 'two workers are registered',
    ...STARTS,
  });
  fleet.child.kill('SIGKILL');
  await once(fleet.child, 'close');
  await until(async () => (await connection.client.exists(`{${queue}}:workers`)) === 0, {
    what: 'both have left',
  });
});
