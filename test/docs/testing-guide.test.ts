/**
 * The service and the test of docs/guide/testing.md are those of a user: they compile, and vitest runs the test.
 * @module-tag own-server
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { root } from './examples.js';

const run = promisify(execFile);
let folder = '';
const files = new Map<string, string>();

beforeAll(async () => {
  const page = await readFile(join(root, 'docs/guide/testing.md'), 'utf8');
  for (const [, code = '', name = ''] of page.matchAll(
    /^```ts\n(\/\/ (newsletter\S*\.ts)\n.*?)^```$/gms,
  ))
    files.set(name, code);
  folder = await mkdtemp(join(tmpdir(), 'piecework-testing-guide-'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const [name, code] of files) await writeFile(join(folder, name), code);
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const vitest = async () => {
  const bin = join(root, 'node_modules/vitest/vitest.mjs');
  // Its own 5 and 10 s are for a machine that does nothing else.
  const patience = ['--testTimeout=120000', '--hookTimeout=120000'];
  const args = [bin, 'run', '--root', folder, '--reporter', 'tap-flat', ...patience];
  const env = { ...process.env, NO_COLOR: '1', VITEST: undefined };
  const said = run(process.execPath, args, { cwd: folder, env });
  return said.catch((error: { stdout: string }) => error);
};

it('has at most 30 lines, imports and all', () => {
  expect([...files.keys()]).toEqual(['newsletter.ts', 'newsletter.test.ts']);
  const lines = (files.get('newsletter.test.ts') as string).trim().split('\n');
  expect(lines.filter((line) => line !== '' && !line.startsWith('//')).length).toBeLessThanOrEqual(
    30,
  );
});

it('passes with the service as it is, and fails when the service is wrong', async () => {
  const { stdout } = await vitest();
  expect(stdout).toMatch(/^ok 1 - .*sends to every reader/m);
  expect(stdout).toMatch(/^ok 2 - .*names the readers/m);
  const service = files.get('newsletter.ts') as string;
  await writeFile(join(folder, 'newsletter.ts'), service.replace('attempts: 3', 'attempts: 1'));
  const { stdout: broken } = await vitest();
  expect(broken).toMatch(/^not ok 1 - .*sends to every reader/m);
  expect(broken).toMatch(/item 1 .*: Error: busy/);
});
