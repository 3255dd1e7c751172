import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished } from 'vitest';
import { endAtOnce, STARTS, startCli } from '../support/cli.js';
import { type CommandLine, jsonLines, test } from '../support/command-line.js';
import { keysOf } from '../support/leaks.js';
import { startOwnRedis } from '../support/redis.js';
import { hasTerminals, startOnTerminal } from '../support/terminal.js';
import { until } from '../support/until.js';

/*
 * What a run leaves that somebody ends: by Ctrl-C, once or twice, by a signal, or with its terminal.
 */

const TOTAL = 20;
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
