/**
 * Looks at every key there is.
 * @module-tag own-server
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection } from '@piecework/protocol';
import type { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { asEverybody, nobodyDenied } from '../support/acl.js';
import { STARTS } from '../support/cli.js';
import { example, startExample, wrongUsages } from '../support/examples.js';
import { nodesOf } from '../support/flow.js';
import { allKeys } from '../support/own-keys.js';
import { testUrl } from '../support/redis.js';
import { until } from '../support/until.js';

const REQUESTS_FILE = 'requests-file/requests-file.mjs';
const PULL = 'pull/pull.mjs';
const CONSUMER = 'throughput/consumer.mjs';
const PRODUCER = 'throughput/producer.mjs';
const sample = fileURLToPath(new URL('../../examples/requests-file/sample.txt', import.meta.url));

let redis: string;
let connection: Connection;
let folder: string;
const running: ChildProcess[] = [];

beforeAll(async () => {
  const url = await testUrl();
  connection = Connection.open(url);
  await connection.check();
  redis = await asEverybody(url, nodesOf(connection));
  folder = await mkdtemp(join(tmpdir(), 'piecework-examples-'));
});
afterAll(async () => {
  await nobodyDenied(nodesOf(connection));
  await connection.close();
  await rm(folder, { recursive: true, force: true });
});
afterEach(async () => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
  // The samples drop what they submit: only tombstones may be left, and no connection but ours.
  const probe = connection.client;
  for (const key of await allKeys(probe)) {
    expect(key).toMatch(/^request:/);
    expect(await probe.hget(key, 'status')).toBe('dropped');
    expect(await probe.pttl(key)).toBeGreaterThan(0);
  }
  // A cluster's connections come and go.
  const [server, ...others] = nodesOf(connection);
  if (!server || others.length > 0) return;
  await until(async () => (await connections(server)) === 1, {
    what: 'all processes have left Redis',
  });
});

const connections = async (server: Redis) =>
  ((await server.client('LIST')) as string).trim().split('\n').length;

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

interface Printed {
  pid: number;
  object: { request: number; part: string; index: number };
}
const printedIn = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Printed);
const sorted = (objects: readonly object[]) =>
  objects.map((object) => JSON.stringify(object)).sort();

describe('requests-file', () => {
  test('the sample file works: every part is printed once, by another process', async () => {
    // Not the sample's own parser: each line up to its comment, at its colons.
    const expected = (await readFile(sample, 'utf8')).split('\n').flatMap((text, i) => {
      const [, ...parts] = (text.split('#')[0] as string).trim().split(':');
      return parts.map((part, index) => ({ request: i + 1, part, index }));
    });
    expect(expected).toHaveLength(40);
    const started = startExample(REQUESTS_FILE, [sample, '--processes', '2'], redis);
    const { code, stdout, stderr } = await started.finished;
    expect(code, stderr).toBe(0);
    const printed = printedIn(stdout);
    expect(sorted(printed.map(({ object }) => object))).toEqual(sorted(expected));
    expect(printed.map(({ pid }) => pid)).not.toContain(started.child.pid);
    expect(stderr.match(/succeeded/g)).toHaveLength(5);
  });

  test('more requests than the window all run, each within its own limit', async () => {
    const requests = Array.from({ length: 300 }, (_, i) => ({
      limit: 1 + (i % 4),
      parts: Array.from({ length: 8 }, (_, part) => `${i}-${part}`),
    }));
    const input = await file(
      'many.txt',
      requests.map(({ limit, parts }) => `${limit}:${parts.join(':')}\n`).join(''),
    );
    const { code, stdout, stderr } = await example(
      REQUESTS_FILE,
      [input, '--window', '40', '--priority', 'line', '--work-ms', '2', '--concurrency', '20'],
      redis,
    );
    expect(code, stderr).toBe(0);
    expect(
      printedIn(stdout)
        .map(({ object }) => object.part)
        .sort(),
    ).toEqual(requests.flatMap(({ parts }) => parts).sort());
    const rows = stderr.split('\n').filter((line) => line.startsWith('requests-file-'));
    expect(rows).toHaveLength(300);
    for (const [i, row] of rows.entries()) {
      const [id, limit, priority, parts, outcome, inFlight] = row.split(/ +/);
      expect(id).toMatch(new RegExp(`-${i + 1}$`));
      expect([limit, parts, outcome]).toEqual([String(1 + (i % 4)), '8', 'succeeded']);
      expect(Number(priority)).toBe(Math.floor(i / 3));
      expect(Number(inFlight)).toBeGreaterThanOrEqual(1);
      expect(Number(inFlight)).toBeLessThanOrEqual(Number(limit));
    }
  });

  test('every wrong line is named, and nothing is submitted', async () => {
    const input = await file(
      'wrong.txt',
      '2:fine\n0:zero\n\n# comment\n7\n1:a::c\nmany:a # limit\n:a\n1.5:a\n3:#all comment\n4:fine',
    );
    const before = await allKeys(connection.client);
    const { code, stdout, stderr } = await example(REQUESTS_FILE, [input], redis);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    const named = [...stderr.matchAll(/line (\d+): (.+)/g)];
    expect(named.map(([, line]) => Number(line))).toEqual([2, 5, 6, 7, 8, 9, 10]);
    expect(named[0]?.[2]).toContain('limit "0"');
    expect(named[1]?.[2]).toContain('no parts');
    expect(named[2]?.[2]).toContain('part 2 of 3 is empty');
    expect(await allKeys(connection.client)).toEqual(before);
  });

  test('Ctrl-C drops the requests and ends the workers', async () => {
    const input = await file('slow.txt', '2:a:b:c:d\n'.repeat(20));
    const started = startExample(
      REQUESTS_FILE,
      [input, '--processes', '1', '--work-ms', '600000'],
      redis,
    );
    running.push(started.child);
    await until(() => started.said.stdout.includes('"part":"a"'), {
      what: 'a part is printed',
      ...STARTS,
    });
    started.child.kill('SIGINT');
    const { code, stderr } = await started.finished;
    expect(code).toBe(1);
    expect(stderr).toContain('stopped by SIGINT');
  });
});

test.each([
  [REQUESTS_FILE, [sample]],
  [PRODUCER, ['--wait']],
  [CONSUMER, []],
  [PULL, []],
])('on a Redis that Piecework refuses %s ends and says why', async (program, args) => {
  const configure = (maxmemory: string, policy: string) => {
    const settings = ['SET', 'maxmemory', maxmemory, 'maxmemory-policy', policy];
    return Promise.all(nodesOf(connection).map((node) => node.call('CONFIG', ...settings)));
  };
  await configure('1gb', 'allkeys-lru');
  try {
    const { code, stderr } = await example(program, args, redis);
    expect(code).toBe(1);
    expect(stderr).toContain('maxmemory-policy is allkeys-lru');
  } finally {
    await configure('0', 'noeviction');
  }
});

const WRONG: [string, string[]][] = [
  [REQUESTS_FILE, []],
  [REQUESTS_FILE, ['/does/not/exist']],
  [REQUESTS_FILE, [sample, '--priority', '100']],
  [REQUESTS_FILE, [sample, '--processes', '0']],
  [PRODUCER, ['--sub-requests', '-1']],
  [PRODUCER, ['--limit', '1e3']],
  [PRODUCER, ['--redis', 'localhost']],
  [PRODUCER, ['unknown']],
  [CONSUMER, ['--slots', '0']],
  [CONSUMER, ['--queue', '{x}']],
  [CONSUMER, ['--unknown']],
  [PULL, ['--slots', '0']],
];
let wrongEnds: ReturnType<typeof wrongUsages> | undefined;

test.each(WRONG)('wrong usage of %s %j is explained with exit code 2', async (program, args) => {
  wrongEnds ??= wrongUsages(WRONG, redis);
  const ends = await wrongEnds;
  const i = WRONG.findIndex(([path, given]) => path === program && given === args);
  const { code, stdout, stderr } = ends[i] ?? {};
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/^error: ./);
});

describe('pull', () => {
  test('an RxJS stream holds no more than its slots, and what failed at first is tried again', async () => {
    const args = ['--items', '120', '--slots', '6', '--at-once', '3', '--work-ms', '10'];
    const { code, stdout, stderr } = await example(PULL, args, redis);
    expect(code, stderr).toBe(0);
    const lines = stdout.trim().split('\n');
    expect(lines).toEqual([
      '120 items: 120 succeeded, 12 failed at first',
      // A slow machine may have fewer at a time.
      expect.stringMatching(/^held at most [1-6] of 6, at work at most [1-3]$/),
    ]);
  });

  test('Ctrl-C gives back what is out, and drops the request', async () => {
    const started = startExample(PULL, ['--work-ms', '600000'], redis);
    running.push(started.child);
    const held = async () => {
      const keys = (await allKeys(connection.client)).filter((key) => key.startsWith('request:'));
      const granted = await Promise.all(keys.map((key) => connection.client.hget(key, 'granted')));
      return granted.some((n) => Number(n) > 0);
    };
    await until(held, { what: 'the stream holds something', ...STARTS });
    started.child.kill('SIGINT');
    const { code, stderr } = await started.finished;
    expect(code).toBe(1);
    expect(stderr).toContain('stopped by SIGINT');
  });
});

describe('throughput', () => {
  const count = (text: string, pattern: RegExp) =>
    Number((pattern.exec(text)?.[1] ?? 'NaN').replaceAll(',', ''));

  test('what producers append consumers settle, exactly, and both report their rates', async () => {
    const consumer = startExample(
      CONSUMER,
      ['--processes', '2', '--slots', '20', '--handler-ms', '1'],
      redis,
    );
    running.push(consumer.child);
    const produced = await example(
      PRODUCER,
      ['--processes', '2', '--requests', '5', '--sub-requests', '2000', '--limit', '30', '--wait'],
      redis,
    );
    expect(produced.code, produced.stderr).toBe(0);
    expect(produced.stdout).toContain('5 requests complete, 10000 sub-requests succeeded');
    expect(count(produced.stdout, /^appended ([\d,]+) in [\d.]+ s, [\d,]+ \/s$/m)).toBe(10_000);
    await until(() => / \/s +10,000 total/.test(consumer.said.stdout), {
      what: 'a rate is printed',
    });
    consumer.child.kill('SIGINT');
    const consumed = await consumer.finished;
    expect(consumed.code, consumed.stderr).toBe(0);
    expect(count(consumed.stdout, /^handled ([\d,]+) in [\d.]+ s, [\d,]+ \/s$/m)).toBe(10_000);
  });

  test('both programs run together on one Redis and end together', async () => {
    const both = await example(
      'throughput/throughput.mjs',
      ['--requests', '3', '--sub-requests', '500', '--', '--processes', '2'],
      redis,
    );
    expect(both.code, both.stderr).toBe(0);
    expect(both.stdout).toContain('3 requests complete, 1500 sub-requests succeeded');
    expect(both.stdout).toMatch(/^handled 1,500 in /m);
  });

  test('a consumer ends by itself when there is nothing left, and a producer need not wait', async () => {
    const args = ['--queue', 'alone'];
    const appended = await example(
      PRODUCER,
      [...args, '--requests', '2', '--sub-requests', '300'],
      redis,
    );
    expect(appended.code, appended.stderr).toBe(0);
    const left = (await allKeys(connection.client)).filter((key) => key.startsWith('request:'));
    expect(left).not.toEqual([]);
    const consumed = await example(CONSUMER, [...args, '--exit-when-idle', '3'], redis);
    expect(consumed.code, consumed.stderr).toBe(0);
    expect(consumed.stdout).toMatch(/^handled 600 in /m);
    // They would go by themselves, in a minute.
    const pw = new Piecework({ redis, queue: 'alone' });
    const probe = connection.client;
    for (const key of await allKeys(probe)) {
      if (!key.startsWith('request:{throughput-')) continue;
      if ((await probe.hget(key, 'status')) === 'dropped') continue;
      expect(await probe.hget(key, 'succeeded')).toBe('300');
      expect(await probe.pttl(key)).toBeGreaterThan(0);
      await pw.request(key.slice('request:{'.length, -1)).drop();
    }
    await pw.close();
  });

  test('children end when their parent is killed', async () => {
    const consumer = startExample(CONSUMER, ['--processes', '2'], redis);
    await until(async () => (await connection.client.zcard('{throughput}:workers')) === 2, {
      what: 'two workers are registered',
      ...STARTS,
    });
    consumer.child.kill('SIGKILL');
    await once(consumer.child, 'close');
    await until(async () => (await connection.client.exists('{throughput}:workers')) === 0, {
      what: 'both have left',
    });
  });
});
