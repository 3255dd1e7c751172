import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished } from 'vitest';
import { cli, endAtOnce, STARTS, startCli } from '../support/cli.js';
import { type CommandLine, jsonLines, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { keysOf } from '../support/leaks.js';
import { startOwnRedis } from '../support/redis.js';
import { hasTerminals, startOnTerminal } from '../support/terminal.js';
import { until } from '../support/until.js';

/*
 * What a run leaves that somebody ends: by Ctrl-C, once or twice, by a signal, or with its terminal.
 */

const TOTAL = 20;
const MANY = 300;
const lines = (n: number) => Array.from({ length: n }, (_, i) => `${i}\n`).join('');
const count = async (path: string) =>
  existsSync(path) ? (await readFile(path, 'utf8')).split('\n').length - 1 : 0;

describe('a run that is ended at once', () => {
  /** The first of its items does not end; all others have, when it is ended. */
  async function endedTwice({ file, folder }: CommandLine, format: string) {
    const input = await file('items.txt', lines(TOTAL));
    const out = join(folder, 'out');
    const log = join(folder, 'job.log');
    const command = 'test {} = 0 && sleep 1000; echo of {}';
    const args = ['run', '--input', input, '--exec', command, '-j', '4', '--format', format];
    const { child, said, finished } = startCli([...args, '--out', out, '--joblog', log]);
    await until(async () => (await count(log)) === TOTAL, { what: 'all but one ended', ...STARTS });
    await endAtOnce(
      () => child.kill('SIGINT'),
      () => said.stderr,
    );
    return { out, ...(await finished) };
  }

  const others = Array.from({ length: TOTAL - 1 }, (_, i) => i + 1);
  const sorted = (text: string) =>
    jsonLines<{ index: number }>(text)
      .map(({ index }) => index)
      .sort((a, b) => a - b);

  test('writes the results that waited for earlier ones, and says so', {
    tags: 'processes',
  }, async ({ commandLine }) => {
    const { code, stderr, out } = await endedTwice(commandLine, 'ndjson');
    expect(code).toBe(130);
    expect(sorted(await readFile(out, 'utf8'))).toEqual(others);
    expect(stderr).toContain(
      `${out} has 19 results: all that finished, the last 19 in the order in which they did (see index)\n`,
    );
  });

  test('writes no result in the place of another when lines have no index', {
    tags: 'processes',
  }, async ({ commandLine }) => {
    const { code, stderr, out } = await endedTwice(commandLine, 'text');
    expect(code).toBe(130);
    expect(await readFile(out, 'utf8')).toBe('');
    const [, path = ''] =
      /has 0 results; 19 more finished behind one that had not: (.+)$/m.exec(stderr) ?? [];
    expect(sorted(await readFile(path, 'utf8'))).toEqual(others);
    await rm(path);
  });
});

describe('a run that is stopped lets running sub-requests end, and starts no others', () => {
  const AT_ONCE = 3;

  /** Three of its items run, and end when they may. */
  async function gated({ file, folder, queue }: CommandLine) {
    const input = await file('items.txt', lines(TOTAL));
    const [began, go, out] = ['began', 'go', 'out'].map((name) => join(folder, name)) as [
      ...[string, string, string],
    ];
    const command = `echo {} >> ${began}; until test -e ${go}; do sleep 0.05; done; echo {}`;
    const work = ['run', '--input', input, '--exec', command, '-j', String(AT_ONCE)];
    return {
      ...{ began, out, args: [...work, '--out', out, '--queue', queue] },
      run: () =>
        until(async () => (await count(began)) === AT_ONCE, { what: 'three run', ...STARTS }),
      goOn: () => file('go', ''),
    };
  }

  test.for([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)(
    'by %s, with exit code %i',
    { tags: 'processes' },
    async ([signal, code], { commandLine }) => {
      const { args, run, goOn, began, out } = await gated(commandLine);
      const { child, said, finished } = startCli(args, { redis: commandLine.redis });
      await run();
      child.kill(signal);
      await until(() => said.stderr.includes('stopping: handlers get 30s, '));
      await goOn();
      expect((await finished).code).toBe(code);
      expect([await count(began), await count(out)]).toEqual([AT_ONCE, AT_ONCE]);
    },
  );

  test.skipIf(!hasTerminals)(
    'by the end of its terminal',
    { tags: 'processes' },
    async ({ commandLine }) => {
      const { redis } = commandLine;
      const { args, run, goOn, began, out } = await gated(commandLine);
      const { child, finished } = startOnTerminal(args, { redis });
      await run();
      child.kill('SIGKILL');
      await finished;
      // The run notices it a moment later, and may start others until then.
      await goOn();
      // Nobody else knows its process: it has ended when nothing of it is left.
      const { connection, queue } = commandLine;
      await until(async () => (await keysOf(connection.client, queue)).length === 0, {
        what: 'nothing of the run is left',
        ...STARTS,
      });
      const ran = await count(began);
      expect(ran).toBeGreaterThanOrEqual(AT_ONCE);
      expect(await count(out)).toBe(ran);
    },
  );
});

describe('a run whose output nobody reads any more', () => {
  /** Its first item ends at once, and all others when its output is closed. @returns what it says from then on */
  async function unread({ file, folder, redis, queue }: CommandLine, ...flags: string[]) {
    const input = await file('items.txt', lines(MANY));
    const [ran, go] = ['ran', 'go'].map((name) => join(folder, name)) as [string, string];
    const waits = `test {} = 0 || until test -e ${go}; do sleep 0.05; done`;
    const work = ['--exec', `echo {} >> ${ran}; ${waits}; sleep 0.05; echo {}`];
    const args = ['run', '--input', input, ...work, '--queue', queue, '--out', '-', ...flags];
    const { child, said, finished } = startCli([...args, '-j', '3'], { redis });
    await until(() => said.stdout.includes('"index":0'), { what: 'one is done', ...STARTS });
    child.stdout?.destroy();
    await file('go', '');
    const { code, stderr } = await finished;
    expect(code, stderr).toBe(1);
    expect(stderr).toContain('standard output: its reader has closed it; stopping: ');
    expect(stderr).not.toContain('is run');
    return { args, stderr, ran: await count(ran) };
  }

  test.for<[string, string, string[]]>([
    ['of all its items', '300', []],
    ['of those that it has read', '\\d+ read so far', ['--window', '20']],
  ])(
    'stops, and says how many %s are done, and how one can go on',
    { tags: 'processes' },
    async ([, total, flags], { commandLine }) => {
      const { stderr, ran } = await unread(commandLine, ...flags);
      const said = `^cancelled: (\\d+) succeeded, 0 failed, [\\d,]+ cancelled of ${total} in `;
      const [, done] = new RegExp(said, 'm').exec(stderr) ?? [];
      expect(done, stderr).toBe(String(ran));
      expect(ran).toBeLessThan(MANY);
      expect(stderr).toContain('the rest is not kept; the same command starts over\n');
      expect(stderr).toContain('  a run that continues: piecework run --id NAME …\n');
      const { connection, queue } = commandLine;
      expect(await keysOf(connection.client, queue)).toEqual([]);
    },
  );

  test('is continued by the same command if it has an id', { tags: 'processes' }, async ({
    commandLine,
  }) => {
    const id = freshName('unread');
    const { args, stderr, ran } = await unread(commandLine, '--id', id);
    expect(stderr).toMatch(new RegExp(`^stopped: ${ran} succeeded, 0 failed of 300 in `, 'm'));
    expect(stderr).toContain(`give the same command again: piecework run --id ${id} …\n`);
    const { redis } = commandLine;
    const again = await cli([...args, '-j', '40'], { redis });
    expect(again.code, again.stderr).toBe(0);
    expect(jsonLines(again.stdout)).toHaveLength(MANY);
  });
});

test('submit --wait ends when nobody reads its results, and says that the request does not', {
  tags: 'processes',
}, async ({ commandLine: { file, folder, queue, redis, run, start } }) => {
  const input = await file('items.txt', '0\n1\n');
  const go = join(folder, 'go');
  const command = `test {} = 0 || until test -e ${go}; do sleep 0.05; done; echo {}`;
  start('worker', '--exec', command);
  const id = freshName('unread');
  const args = ['submit', '--input', input, '--id', id, '--queue', queue, '--wait', '--out', '-'];
  const { child, said, finished } = startCli(args, { redis });
  await until(() => said.stdout.includes('"index":0'), { what: 'one is done', ...STARTS });
  child.stdout?.destroy();
  await file('go', '');
  const { code, stderr } = await finished;
  expect(code).toBe(1);
  expect(stderr).toContain(`its reader has closed it; ${id} runs on: piecework watch ${id}\n`);
  expect((await run('watch', id)).code).toBe(0);
});

test('a run without an id that is stopped says that its output is replaced, and how to go on', {
  tags: 'processes',
}, async ({ commandLine: { file, folder } }) => {
  const input = await file('items.txt', lines(TOTAL));
  const out = join(folder, 'out');
  const args = ['run', '--input', input, '--exec', 'sleep 0.3; echo {}', '-j', '1', '--out', out];
  const { child, finished } = startCli(args);
  await until(async () => (await count(out)) > 0, { what: 'some are done', ...STARTS });
  child.kill('SIGINT');
  const { code, stderr } = await finished;
  expect(code).toBe(130);
  expect(stderr.split('\n').slice(-4)).toEqual([
    'the rest is not kept; the same command starts over and replaces --out',
    '  a run that continues: piecework run --id NAME --redis URL …',
    '  a run that leaves the rest as input: piecework run --out-dir DIR …',
    '',
  ]);
});

test('a run whose request is dropped while it reads does not say that the rest is run', {
  tags: 'processes',
}, async ({ commandLine: { file, folder, run, start } }) => {
  const input = await file('items.txt', lines(TOTAL));
  const began = join(folder, 'began');
  const id = freshName('dropped');
  const work = ['--exec', `echo {} >> ${began}; sleep 1000`, '-j', '1', '--window', '2'];
  const { finished } = start('run', '--id', id, '--input', input, ...work);
  await until(async () => (await count(began)) > 0, { what: 'one runs', ...STARTS });
  await run('drop', id);
  const { code, stderr } = await finished;
  expect(code).toBe(1);
  expect(stderr).toContain('was dropped');
  expect(stderr).not.toContain('what was read before that is run');
});

test('a run whose request the server has lost says which files to move away, and what to do then', {
  tags: ['own-server', 'processes'],
}, async ({ commandLine: { file, folder } }) => {
  const { url, close } = await startOwnRedis();
  onTestFinished(close);
  const input = await file('items.txt', lines(TOTAL));
  const out = join(folder, 'out');
  const args = ['run', '--id', 'lost', '--input', input, '--exec', 'sleep 0.3; echo {}'];
  const { finished } = startCli([...args, '-j', '1', '--out', out], { redis: url });
  await until(async () => (await count(out)) > 0, { what: 'some are done', ...STARTS });
  const operator = new Redis(url);
  onTestFinished(() => operator.disconnect());
  await operator.flushall();
  const { code, stderr } = await finished;
  expect(code).toBe(1);
  expect(stderr).toContain(`move ${out} away, then give the same command again\n`);
  expect(stderr).not.toContain('to continue');
});
