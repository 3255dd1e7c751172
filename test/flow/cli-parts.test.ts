import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { keptLines } from '../../packages/cli/dist/output/kept.js';

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
