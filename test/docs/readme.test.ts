/**
 * Its programs leave what a user's first program leaves.
 * @module-tag own-server
 */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Piecework } from 'piecework';
import { expect, it, onTestFinished } from 'vitest';
import { listen } from '../support/listen.js';
import { startOwnRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** The program of a README, and what it is said to print. */
function programOf(readme: string): { program: string; output: string } {
  const [, program = ''] = /```js\n(\/\/ first\.mjs\n.*?)```/s.exec(readme) ?? [];
  const [, output = ''] = /\$ node first\.mjs\n((?: {4}.+\n)+)/.exec(readme) ?? [];
  return { program, output: output.replace(/^ {4}/gm, '') };
}

it('the program of README runs as it stands, prints what README says, and ends', async () => {
  const { program, output } = programOf(read('README.md'));
  const server = await startOwnRedis();
  const folder = await mkdtemp(join(tmpdir(), 'piecework-readme-'));
  onTestFinished(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
  await writeFile(join(folder, 'first.mjs'), program);
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const env = { ...process.env, REDIS_URL: server.url };
  const child = spawn(process.execPath, ['first.mjs'], { cwd: folder, env });
  onTestFinished(() => void child.kill('SIGKILL'));
  const { code, stdout, stderr } = await listen(child).finished;
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: output, stderr: '' });
  expect(output).toMatch(/^succeeded/);
});

it('README of the package has the same program', () => {
  expect(programOf(read('packages/piecework/README.md'))).toEqual(programOf(read('README.md')));
});

it('READMEs of packages link to no file that a package lacks', () => {
  for (const name of readdirSync(join(root, 'packages')))
    expect(read(`packages/${name}/README.md`), name).not.toMatch(/\]\((?!https?:)/);
});

it('a worker that signals close, as README says, gives its work back and lets its process end', async () => {
  const closing = (readme: string) => /```js\n(for \(const signal of .*\n)```/.exec(readme)?.[1];
  const line = closing(read('README.md'));
  expect(line).toContain('SIGTERM');
  expect(closing(read('packages/piecework/README.md'))).toBe(line);
  const server = await startOwnRedis();
  const folder = await mkdtemp(join(tmpdir(), 'piecework-readme-'));
  onTestFinished(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
  const program = `
    import { Worker } from 'piecework';
    const handler = () => new Promise((resolve) => setTimeout(resolve, 100));
    const worker = new Worker({ redis: process.env.REDIS_URL, concurrency: 1, handler });
    ${line}
    worker.on('settled', () => console.log('settled'));
    await worker.start();
  `;
  await writeFile(join(folder, 'worker.mjs'), program);
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  await using pw = new Piecework({ redis: server.url });
  const request = await pw.submit(Array(200).fill('a'));
  const env = { ...process.env, REDIS_URL: server.url };
  const child = spawn(process.execPath, ['worker.mjs'], { cwd: folder, env });
  onTestFinished(() => void child.kill('SIGKILL'));
  const listened = listen(child);
  await until(() => listened.said.stdout.includes('settled'), { timeoutMs: 30_000 });
  child.kill('SIGTERM');
  expect(await listened.finished).toMatchObject({ code: 0, stderr: '' });
  const { counts } = await request.status();
  expect(counts).toMatchObject({ inFlight: 0, failed: 0 });
  expect(counts.ready).toBeGreaterThan(0);
  expect(await pw.admin.workers()).toEqual([]);
  await request.drop();
});

const folders = readdirSync(join(root, 'examples'), { withFileTypes: true });
it.each(folders.filter((entry) => entry.isDirectory()).map(({ name }) => name))(
  'examples/%s has a README, whose commands are there',
  (name) => {
    const readme = read(`examples/${name}/README.md`);
    expect(readme.trim().split('\n').length).toBeGreaterThan(9);
    const programs = [...readme.matchAll(/^ {4}node (\S+)/gm)].map(([, path]) => path as string);
    // What runs inside of a framework is there to be copied.
    if (programs.length === 0) expect(readme).toMatch(/^(Copy|.*: copy) `/m);
    for (const path of programs) expect(existsSync(join(root, path)), path).toBe(true);
  },
);

const readmes = ['packages', 'tools'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => existsSync(join(root, folder, name, 'package.json')))
    .map((name) => `${folder}/${name}/README.md`),
);
it.each(['README.md', ...readmes])('every link of %s to a file leads to one', (path) => {
  for (const [, link] of read(path).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g))
    expect(existsSync(join(root, path, '..', link as string)), link).toBe(true);
});
