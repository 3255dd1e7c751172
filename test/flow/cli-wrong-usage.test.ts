/**
 * Looks at every key there is: nothing may be written.
 * @module-tag own-server
 */
import { fileURLToPath } from 'node:url';
import { isAllowed } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commonFlags } from '../../packages/cli/dist/flags/common-flags.js';
import {
  devFlags,
  pauseFlags,
  queueWideFlag,
  redriveFlags,
  updateFlags,
} from '../../packages/cli/dist/flags/control-flags.js';
import type { Flag } from '../../packages/cli/dist/flags/flag.js';
import {
  doctorFlags,
  failuresFlags,
  listFlags,
  resultsFlags,
  watchFlags,
} from '../../packages/cli/dist/flags/query-flags.js';
import { requestFlags } from '../../packages/cli/dist/flags/request-flags.js';
import { outFlags, runFlags } from '../../packages/cli/dist/flags/run-flags.js';
import { healthFlags, workerFlags } from '../../packages/cli/dist/flags/work-flags.js';
import { CommandLines, cli } from '../support/cli.js';
import { testRedis } from '../support/redis.js';

// Every flag of every command, with values that its own schema refuses.
const handler = fileURLToPath(new URL('../support/programs/handler.mjs', import.meta.url));
const input = fileURLToPath(import.meta.url);
const commands: Record<string, { args: string[]; flags: readonly Flag[] }> = {
  run: {
    args: ['run', '--input', input, '--handler', handler],
    flags: [...commonFlags, ...requestFlags, ...outFlags, ...runFlags, ...workerFlags],
  },
  submit: {
    args: ['submit', '--input', input],
    flags: [...commonFlags, ...requestFlags, ...outFlags],
  },
  worker: {
    args: ['worker', '--handler', handler],
    flags: [...commonFlags, ...workerFlags, ...healthFlags],
  },
  status: { args: ['status', 'x'], flags: commonFlags },
  results: { args: ['results', 'x'], flags: [...commonFlags, ...resultsFlags, ...outFlags] },
  failures: { args: ['failures', 'x'], flags: [...commonFlags, ...failuresFlags] },
  errors: { args: ['errors'], flags: commonFlags },
  redrive: { args: ['redrive', 'x'], flags: [...commonFlags, ...redriveFlags] },
  cancel: { args: ['cancel', 'x'], flags: commonFlags },
  pause: { args: ['pause', '--queue-wide'], flags: [...commonFlags, ...pauseFlags] },
  resume: { args: ['resume', '--queue-wide'], flags: [...commonFlags, queueWideFlag] },
  update: { args: ['update', 'x'], flags: [...commonFlags, ...updateFlags] },
  drop: { args: ['drop', 'x'], flags: commonFlags },
  list: { args: ['list'], flags: [...commonFlags, ...listFlags] },
  workers: { args: ['workers'], flags: commonFlags },
  watch: { args: ['watch', 'x'], flags: [...commonFlags, ...watchFlags] },
  doctor: { args: ['doctor'], flags: [...commonFlags, ...doctorFlags] },
  dev: { args: ['dev'], flags: devFlags },
};

const CANDIDATES = [
  '',
  '-1',
  '1.5',
  'NaN',
  '99999999999999',
  'no such thing',
  'a{b}',
  '{',
  '/does/not/exist',
];

/** What the command line makes of a text before it checks it. */
function parsed(flag: Flag, text: string): unknown {
  if (flag.kind === 'number')
    return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
  return text;
}

function wrongTexts(flag: Flag): string[] {
  if (flag.kind === 'switch') return [];
  if (flag.kind === 'json') return ['{', JSON.stringify('x'.repeat(10_000))];
  return CANDIDATES.filter((text) => !isAllowed(parsed(flag, text), flag.spec)).slice(0, 2);
}

let url: string;
let probe: Redis;
let lines: CommandLines;
beforeAll(async () => {
  url = (await testRedis()).url;
  probe = new Redis(url);
  await probe.set('foreign', 'key');
  lines = new CommandLines();
});
afterAll(async () => {
  await probe.quit();
  await lines.close();
});

/** Flags that a command before has too: that they are this one's as well is seen by a few of them. */
const seen = new Set<Flag>();

describe.each(Object.entries(commands))('piecework %s', (_, { args, flags }) => {
  const shared = flags.filter((flag) => seen.has(flag)).slice(0, 3);
  const own = flags.filter((flag) => !seen.has(flag));
  for (const flag of own) seen.add(flag);
  const cases = [
    ...own.flatMap((flag) => wrongTexts(flag).map((text) => ({ flag, text }))),
    ...shared.flatMap((flag) =>
      wrongTexts(flag)
        .slice(0, 1)
        .map((text) => ({ flag, text })),
    ),
  ];

  test('refuses a wrong value of every flag, names the flag, and writes nothing', async () => {
    const untested = flags.filter(
      (flag) => flag.kind !== 'switch' && wrongTexts(flag).length === 0,
    );
    expect(untested.map(({ usage }) => usage)).toEqual([]);
    for (const { flag, text } of cases) {
      const name = /--[a-z-]+/.exec(flag.usage)?.[0] as string;
      const without = args.filter((arg, i) => arg !== name && args[i - 1] !== name);
      const ended = await lines.run([...without, '--json', name, text], url);
      const what = `${name}=${text}: ${ended.stderr}`;
      expect(ended.code, what).toBe(2);
      const { error } = JSON.parse(ended.stderr) as { error: { code: string; message: string } };
      expect(error.code, what).toBe('INVALID_OPTION');
      expect(error.message, what).toContain(name);
      expect(error.message, what).toContain(flag.spec.allowed);
      expect(await probe.keys('*'), what).toEqual(['foreign']);
    }
  });

  test('refuses an unknown flag and a missing argument', async () => {
    expect((await lines.run([...args, '--no-such-flag'], url)).code).toBe(2);
    const [command = ''] = args;
    // These do something sensible without any.
    if (!['list', 'workers', 'errors', 'watch', 'doctor', 'dev'].includes(command)) {
      expect((await lines.run([command], url)).code).toBe(2);
    }
    expect(await probe.keys('*')).toEqual(['foreign']);
  });
});

test('refuses an unknown command, and help is no error', async () => {
  expect((await cli(['nonsense'])).code).toBe(2);
  const help = await cli(['--help']);
  expect(help.code).toBe(0);
  for (const command of Object.keys(commands)) expect(help.stdout).toContain(command);
});

test('a command on existing requests needs the URL of Redis', async () => {
  const ended = await cli(['status', 'x', '--json']);
  expect(ended.code).toBe(2);
  expect(ended.stderr).toContain('--redis');
});

test('refuses a split that does not fit the input, and results that are discarded', async () => {
  const folder = fileURLToPath(new URL('.', import.meta.url));
  const wrong = [
    ['submit', '--input', folder, '--split', 'lines'],
    ['submit', '--input', '-', '--split', 'files'],
    ['submit', '--input', '-', '--input', '-'],
    ['run', '--input', `${folder}*.test.ts`, '--exec', 'cat', '--out', input],
    ['run', '--input', input, '--exec', 'cat', '--joblog', input],
    ['submit', '--input', `${folder}*.none`],
    ['submit', '--input', input, '--split', 'csv', '--binary'],
    ['submit', '--input', input, '--split', 'chunk:2', '--batch', '2'],
    ['run', '--input', input, '--handler', handler, '--format', 'text'],
    ['run', '--input', input, '--exec', "echo '{}'"],
    ['worker', '--exec', 'cat {}', '--persistent'],
    ['worker', '--handler', handler, '--exec-input', 'lines'],
    ['worker', '--handler', handler, '--exec-stderr', 'index'],
    ['submit', '--input', input, '--out', 'x'],
    ['submit', '--input', input, '--expedite'],
    ['run', '--input', input, '--handler', handler, '--expedite'],
    ['submit', '--input', input, '--wait', '--results', 'discard', '--out', 'x'],
    ['run', '--input', input, '--handler', handler, '--results', 'discard', '--out', 'x'],
    ['worker', '--handler', handler, '--exec', 'cat'],
    ['worker', '--handler', handler, '--persistent'],
    ['worker', '--handler', handler, '--exec-output', 'json'],
    ['worker', '--exec', 'cat', '--persistent', '--exec-output', 'json'],
    ['dev', '--cluster', '--port', '21000'],
    ['dev', '--dashboard', '--dir', 'data'],
    ['dev', '--dashboard-port', '4000'],
    ['watch', 'a{b}'],
  ];
  for (const args of wrong) {
    const ended = await lines.run(args);
    expect(ended.code, args.join(' ')).toBe(2);
  }
  expect(await probe.keys('*')).toEqual(['foreign']);
});
