import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { shownText } from '@piecework/protocol/contract';
import { describe, expect, test } from 'vitest';
import { keptLines } from '../../packages/cli/dist/output/kept.js';
import { resultFormats } from '../../packages/cli/dist/output/result-format.js';

const LOADER = new URL('../../packages/cli/dist/work/load-handlers.js', import.meta.url).href;
const PROGRAM = `
import { loadHandlers } from '${LOADER}';
const shown = (_, it) => (typeof it === 'function' ? 'a function' : it);
console.log(JSON.stringify(await loadHandlers(process.argv[1]), shown));
`;

/*
 * Parts of the command line that need no server.
 */

describe('a handler that tsc compiled for CommonJS', () => {
  const COMPILED =
    "'use strict';\nObject.defineProperty(exports, '__esModule', { value: true });\n";

  /** By Node itself: vitest loads CommonJS in another way. */
  async function loaded(code: string) {
    const folder = await mkdtemp(join(tmpdir(), 'piecework-handler-'));
    const file = join(folder, 'handler.cjs');
    await writeFile(file, code);
    const args = ['--input-type=module', '--eval', PROGRAM, file];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    await rm(folder, { recursive: true });
    return JSON.parse(stdout);
  }

  test('is the function that was exported as the default, with its backoff', async () => {
    const code = `${COMPILED}exports.backoff = () => 7;\nexports.default = async (n) => n * 2;\n`;
    expect(await loaded(code)).toEqual({ handler: 'a function', backoff: 'a function' });
  });

  test('is an object of functions by task, too', async () => {
    const made = await loaded(`${COMPILED}exports.default = { resize: (x) => x };\n`);
    expect(made).toEqual({ handlers: [{ task: 'resize', run: 'a function' }] });
  });

  test('is not taken for one when somebody wrote an object of tasks', async () => {
    const made = await loaded('module.exports = { default: (x) => x, resize: (x) => x };\n');
    expect(made).toMatchObject({ handlers: [{ task: 'default' }, { task: 'resize' }] });
  });
});

test('commands that are suggested show no password', () => {
  const kept = { id: 'x', retentionMs: 1_000, failed: true, results: true };
  const shown = (redis: string) => keptLines({ ...kept, redis }).join('\n');
  for (const url of [
    'redis://:sesame@host',
    'redis-sentinel://a,b/main?sentinelPassword=sesame',
    'redis-sentinel://:ses/ame@host/main',
    'redis://host?password=sesame',
  ])
    expect(shown(url)).toMatch(/ --redis URL$/m);
  expect(shown('redis://host/3')).toContain("--redis 'redis://host/3'");
});

describe('a text from outside', () => {
  test.for<[text: string, shown: string]>([
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u001b\u001b[0m[2J', '\\u001b[2J'],
    ['a\nb\tc\r', 'a\\nb\\tc\\r'],
    ['\u009b2J\u202e\u200b\u2028', '\\u009b2J\\u202e\\u200b\\u2028'],
    ['\u{e0041}', '\\udb40\\udc41'],
    ['\ud800', '\\ud800'],
    ['é 世界 ü', 'é 世界 ü'],
    // What is hidden in an emoji is a part of it; elsewhere it is not.
    ['👨‍👩‍👧 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿', '👨‍👩‍👧 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿'],
    ['👨\u200da\ufe0f', '👨\\u200da\\ufe0f'],
  ])('%j is shown as %j', ([text, shown]) => {
    expect(shownText(text)).toBe(shown);
  });

  test('that is JSON stays the same data', () => {
    const data = { '\u009b\u202e': ['\u{e0041}\u200b\n\u001b[31m', '\\u200b', '\ud800'] };
    expect(JSON.parse(shownText(JSON.stringify(data)))).toEqual(data);
  });
});

test.for<[value: unknown, field: string]>([
  ['=1+1', "'=1+1"],
  ['+49 170', "'+49 170"],
  ['-x', "'-x"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['\r=1,2', `"'\r=1,2"`],
  ['=HYPERLINK("x","y")', `"'=HYPERLINK(""x"",""y"")"`],
  ['-5', '-5'],
  [-5.5, '-5.5'],
  ['+1e3', '+1e3'],
  ['a=b', 'a=b'],
  [{ a: 1 }, '"{""a"":1}"'],
])('in CSV the value %j is no formula, and a number stays one: %s', ([value, field]) => {
  const succeeded = { index: 0, status: 'succeeded', value, cursor: 'x' } as const;
  expect(resultFormats.csv.line(succeeded)).toBe(`0,succeeded,${field},`);
  const error = { name: '=cmd', message: 'x', stack: '' };
  expect(resultFormats.csv.line({ index: 0, status: 'failed', error, cursor: 'x' })).toBe(
    "0,failed,,'=cmd: x",
  );
});
