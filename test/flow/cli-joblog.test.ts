import { link, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { joblogLine } from '../../packages/cli/dist/output/joblog.js';
import { test } from '../support/command-line.js';

describe('the joblog', () => {
  test('has exit values and signals as in GNU parallel', async ({
    commandLine: { run, file, folder },
  }) => {
    const log = join(folder, 'job.log');
    const commands = ['true', 'exit 7', 'kill -9 $$', 'sleep 60', 'nosuchprogram'];
    const input = await file('commands', commands.join('\n'));
    const exec = ['--exec', 'eval {}', '-j', '5', '--attempt-timeout-ms', '3000'];
    const ended = await run('run', '--input', input, ...exec, '--joblog', log);
    expect(ended.code, ended.stderr).toBe(1);
    const [, ...lines] = (await readFile(log, 'utf8')).trimEnd().split('\n');
    const ends = lines
      .map((line) => line.split('\t'))
      .map((cells) => [cells[0], ...cells.slice(5)]);
    expect(ends.sort()).toEqual([
      ['0', '0', '0'],
      ['1', '7', '0'],
      ['2', '0', '9'],
      ['3', '-1', '15'],
      ['4', '127', '0'],
    ]);
  });

  test('is refused where links make it one file with another output or an input', async ({
    commandLine: { run, file, folder },
  }) => {
    const at = (name: string) => join(folder, name);
    const input = await file('words', 'a');
    await symlink(at('nothing-yet'), at('ahead'));
    await link(await file('old', 'kept'), at('hard'));
    await link(input, at('same-words'));
    for (const [flag, args] of [
      ['--joblog', ['--out', at('ahead'), '--joblog', at('nothing-yet')]],
      ['--joblog', ['--out', at('old'), '--joblog', at('hard')]],
      ['--bad-rows', ['--out', at('old'), '--bad-rows', at('hard')]],
      ['--out', ['--out', at('same-words')]],
    ] as const) {
      const { code, stderr } = await run('run', '--input', input, '--exec', 'true', ...args);
      expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining(flag)]);
    }
    expect(await readFile(at('hard'), 'utf8')).toBe('kept');
    expect(await readFile(input, 'utf8')).toBe('a');
  });

  test('shows a crash by its exit code or signal, and by -1 where nobody saw it', () => {
    const line = (error: object) =>
      joblogLine({
        ...{ index: 3, status: 'failed', cursor: '' },
        error: { name: 'CrashError', message: 'its worker ended', worker: 'vm-1-x', ...error },
      } as Parameters<typeof joblogLine>[0]);
    expect(line({ exitCode: 3 })).toBe('3\tvm-1-x\t\t\t\t3\t0');
    expect(line({ signal: 'SIGKILL' })).toBe('3\tvm-1-x\t\t\t\t0\t9');
    expect(line({})).toBe('3\tvm-1-x\t\t\t\t-1\t0');
    expect(line({ name: 'RangeError' })).toBe('3\tvm-1-x\t\t\t\t1\t0');
  });
});
