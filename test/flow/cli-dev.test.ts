import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type { Finding } from 'piecework';
import { describe, expect, onTestFinished } from 'vitest';
import { cli, STARTS, startCli } from '../support/cli.js';
import { jsonLines, runCli, test } from '../support/command-line.js';
import { freshName } from '../support/given.js';
import { descendants, runs } from '../support/processes.js';
import { until } from '../support/until.js';

const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));

test('dev runs a Redis that other commands can use, until it is stopped', {
  tags: 'processes',
}, async ({ commandLine: { file, folder } }) => {
  const id = freshName('request');
  const dir = `${folder}/data`;
  const input = await file('one.txt', 'a\nb\n');
  for (const round of ['first', 'second']) {
    const dev = startCli(['dev', '--dir', dir]);
    const [, url = ''] = await until(
      () => /^export REDIS_URL=(redis:\S+)\n/.exec(dev.said.stdout),
      STARTS,
    );
    if (round === 'first') {
      const doctor = await runCli(['doctor', '--json'], { redis: url });
      // Of its own server there is nothing that a person could change.
      const wrong = jsonLines<Finding>(doctor.stdout).filter(({ level }) => level !== 'ok');
      expect(wrong.map(({ check }) => check)).toEqual(['queue']);
      expect((await runCli(['submit', '--input', input, '--id', id], { redis: url })).code).toBe(0);
    } else {
      // Its folder outlived it, and what was acknowledged is in it.
      const status = await runCli(['status', id, '--json'], { redis: url });
      expect(JSON.parse(status.stdout)).toMatchObject({ status: 'sealed', counts: { total: 2 } });
    }
    dev.child.kill('SIGINT');
    expect((await dev.finished).code).toBe(0);
    const gone = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
    gone.on('error', () => {});
    await expect(gone.connect()).rejects.toThrow();
  }
});

test('dev runs a cluster whose URL the other commands take', { tags: 'processes' }, async ({
  commandLine: { file },
}) => {
  const input = await file('some.txt', Array.from({ length: 50 }, (_, i) => `${i}`).join('\n'));
  const dev = startCli(['dev', '--cluster', '--json']);
  const { url } = JSON.parse(
    await until(() => /^\{.*\}$/m.exec(dev.said.stdout)?.[0], { timeoutMs: 60_000 }),
  );
  expect(url.split(',')).toHaveLength(6);
  expect(dev.said.stderr).toContain('Not safe beside other users of this machine');
  const args = ['--input', input, '--split', 'ndjson', '--handler', handler, '--json'];
  const ended = await cli(['run', ...args, '--processes', '2'], { redis: url });
  expect(ended.code, ended.stderr).toBe(0);
  expect(JSON.parse(ended.stdout).counts).toMatchObject({ total: 50, succeeded: 50 });
  // One node of several masters is no server of its own.
  const [one] = url.split(',');
  const alone = await runCli(['submit', '--input', input, '--json'], { redis: one });
  expect(alone.code).toBe(1);
  expect(JSON.parse(alone.stderr).error.code).toBe('CLUSTER');
  dev.child.kill('SIGTERM');
  expect((await dev.finished).code).toBe(0);
});

describe('a command that a test forgets', () => {
  let forgotten: number[] = [];

  test('runs until the test is over', { tags: 'processes' }, async () => {
    const { child, said } = startCli(['dev']);
    await until(() => said.stdout.startsWith('export'), STARTS);
    forgotten = [child.pid as number, ...descendants(child.pid).map(({ pid }) => pid)];
    expect(forgotten.length).toBeGreaterThan(1);
    expect(forgotten.every(runs)).toBe(true);
  });

  test('has ended behind it, with all that it started', { tags: 'processes' }, async () => {
    onTestFinished(() => {
      for (const pid of forgotten.filter(runs)) process.kill(pid, 'SIGKILL');
    });
    expect(forgotten).not.toEqual([]);
    await until(() => !forgotten.some(runs));
  });
});

test('the doctor expects no persistence, memory limit or replica of a server of dev', {
  tags: 'processes',
}, async () => {
  const dev = startCli(['dev']);
  const [, url = ''] = await until(
    () => /^export REDIS_URL=(redis:\S+)\n/.exec(dev.said.stdout),
    STARTS,
  );
  const { stdout } = await runCli(['doctor', '--json'], { redis: url });
  const findings = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { level: string; check: string });
  const kinds = ['memory', 'persistence', 'replicas'];
  const levels = findings.filter(({ check }) => kinds.includes(check)).map(({ level }) => level);
  expect(levels).toEqual(['ok', 'ok', 'ok']);
  dev.child.kill('SIGINT');
  await dev.finished;
});
