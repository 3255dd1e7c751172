// Installs Piecework as its users do, and uses it: clones what is committed here, sets the clone up, packs all
// packages by npm and by pnpm, installs the tarballs into empty folders, and uses them there: the program of README,
// the command line, tests in vitest and Jest, several versions of TypeScript, bundlers, Bun and Deno. Needs the registry
// of npm; takes about ten minutes.
//
//   npm run test:install
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startRedis } from '@piecework/embedded';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'piecework-install-'));
const clone = join(folder, 'clone');
/** Without what npm tells the scripts that it runs, which would be settings of those run here. */
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(npm_(?!config_registry)|NODE_PATH$)/.test(name),
  ),
);

/** Runs a command to its end. @throws Error with all that it said, when its exit code is another one */
async function run(cwd, command, args, { env = {}, code = 0 } = {}) {
  const start = performance.now();
  const child = spawn(command, args, {
    cwd,
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
  const [status, signal] = await once(child, 'close');
  const line = [command, ...args]
    .map((word) => word.replace(folder, '…'))
    .join(' ')
    .slice(0, 90);
  if (status !== code) throw new Error(`exit code ${status ?? signal} of: ${line}\n${said}`);
  console.log(`${((performance.now() - start) / 1_000).toFixed(1).padStart(6)} s  ${line}`);
  return said;
}

function mustHave(said, wanted) {
  if (!said.includes(wanted)) throw new Error(`expected '${wanted}' in:\n${said}`);
}

const installed = (name) => fileURLToPath(new URL(`installed/${name}`, import.meta.url));

/** An empty project with these tarballs, and then packages of others, installed by npm. */
async function project(name, tarballs, others = [], manifest = {}) {
  const at = join(folder, name);
  mkdirSync(at);
  writeFileSync(join(at, 'package.json'), JSON.stringify({ private: true, ...manifest }));
  await install(at, tarballs);
  if (others.length > 0) await run(at, 'npm', [...INSTALL, ...others]);
  return at;
}

const INSTALL = ['install', '--no-audit', '--no-fund'];

async function install(at, tarballs) {
  const said = await run(at, 'npm', [...INSTALL, ...tarballs]);
  // Such as EBADENGINE, when one of the dependencies needs another Node.
  if (said.includes('npm warn')) throw new Error(`npm warns:\n${said}`);
}

const firstProgram = (readme) => /```js\n(\/\/ first\.mjs\n.*?)```/s.exec(readme)[1];

/** Uses the library alone. */
async function useLibrary(at, redis, readme) {
  writeFileSync(join(at, 'first.mjs'), firstProgram(readme));
  mustHave(
    await run(at, process.execPath, ['first.mjs'], { env: { REDIS_URL: redis } }),
    'succeeded',
  );
  const required = "console.log(typeof require('piecework').Piecework)";
  mustHave(await run(at, process.execPath, ['-e', required]), 'function');
  // It is not the command line, and says so.
  mustHave(await run(at, 'npx', ['piecework'], { code: 1 }), 'npm install @piecework/cli');
}

/** Runs the test of docs/guide/testing.md, as a user's project would. */
async function useTestKit(at, page) {
  for (const [, code, name] of page.matchAll(/^```ts\n(\/\/ (newsletter\S*\.ts)\n.*?)^```$/gms))
    writeFileSync(join(at, name), code);
  writeFileSync(join(at, 'package.json'), '{ "private": true, "type": "module" }\n');
  mustHave(await run(at, 'npx', ['vitest', 'run'], { env: { NO_COLOR: '1' } }), '2 passed');
  const plain = "import('@piecework/testing').then((kit) => console.log(Object.keys(kit).join()))";
  mustHave(await run(at, process.execPath, ['-e', plain]), 'assertSucceeded');
}

/** Runs tests in Jest, as docs/guide/testing.md says. */
async function useJest(at) {
  const env = { NODE_OPTIONS: '--experimental-vm-modules' };
  for (const name of ['jest-module.mjs', 'jest-commonjs.cjs']) {
    copyFileSync(installed(name), join(at, name));
    const args = ['jest', '--testMatch', `**/${name}`];
    mustHave(await run(at, 'npx', args, { env }), '1 passed, 1 total');
  }
}

/**
 * Compiles the programs of test/types, of which some lines must not compile, and a module that exports every entry point.
 * The declarations of all packages are checked, too. The user has installed no types of Node, unless `others` does.
 */
async function useTypeScript(version, tarballs, others = []) {
  const needed = [`typescript@${version}`, 'ioredis-5@npm:ioredis@5', ...others];
  const at = await project(`typescript-${version}`, tarballs, needed, { type: 'module' });
  cpSync(join(root, 'test/types/programs'), at, { recursive: true });
  const scoped = readdirSync(join(at, 'node_modules/@piecework'));
  const entries = ['piecework', ...scoped.map((name) => `@piecework/${name}`)].flatMap((name) => {
    const manifest = readFileSync(join(at, 'node_modules', name, 'package.json'), 'utf8');
    return (
      Object.entries(JSON.parse(manifest).exports)
        // The matchers of vitest need vitest.
        .filter(([entry, { types }]) => types && entry !== './vitest')
        .map(([entry]) => name + entry.slice(1))
    );
  });
  const lines = entries.map((entry, i) => `export * as e${i} from '${entry}';\n`);
  writeFileSync(join(at, 'entries.ts'), lines.join(''));
  const files = readdirSync(at).filter((name) => name.endsWith('.ts'));
  const options = ['--strict', '--noEmit', '--skipLibCheck', 'false', '--target', 'es2022'];
  const nodenext = ['--module', 'nodenext'];
  const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler'];
  for (const modules of [nodenext, bundler])
    await run(at, 'npx', ['tsc', ...options, ...modules, ...files]);
}

/** Bundles the worker of long-block.mjs, as docs/guide/bundling.md says, and runs the bundles where no package is. */
async function useBundles(at, redis) {
  const source = 'long-block.mjs';
  copyFileSync(installed(source), join(at, source));
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const require = 'const require = createRequire(import.meta.url);';
  const banner = `--banner:js=import { createRequire } from 'node:module'; ${require}`;
  const esbuild = ['esbuild', source, '--bundle', '--platform=node'];
  const bun = ['bun', 'build', source, '--target=node'];
  const webpack = ['webpack', '--mode', 'production', '--target', 'node'];
  const bundles = [
    ['esbuild.cjs', (out) => [...esbuild, '--format=cjs', `--outfile=${out}`]],
    ['esbuild.mjs', (out) => [...esbuild, '--format=esm', banner, `--outfile=${out}`]],
    ['bun.cjs', (out) => [...bun, '--format=cjs', `--outfile=${out}`]],
    ['bun.mjs', (out) => [...bun, `--outfile=${out}`]],
    ['main.js', () => [...webpack, '--entry', `./${source}`, '-o', empty]],
  ];
  for (const [name, command] of bundles) await run(at, 'npx', command(join(empty, name)));
  await Promise.all(bundles.map(([name]) => blockLong(empty, [process.execPath, name], redis)));
}

/** Runs long-block.mjs: its handler runs once. */
async function blockLong(at, [command, ...args], redis) {
  const queue = basename(command) + args.at(-1);
  const said = await run(at, command, [...args, queue], { env: { REDIS_URL: redis } });
  mustHave(said, 'succeeded, runs: 1');
}

/** Another runtime than Node, as docs/guide/bundling.md says: `command` runs a program with it. */
async function useRuntime(at, command, redis) {
  const runs = (args, env = {}) => run(at, command[0], [...command.slice(1), ...args], { env });
  const [, pid] = /pid (\d+)/.exec(await runs(['embedded.mjs'])) ?? [];
  while (existsSync(`/proc/${pid}`)) await new Promise((resolve) => setTimeout(resolve, 100));
  const piecework = 'node_modules/@piecework/cli/bin/piecework.js';
  const input = ['--input', 'words.txt', '--out', '-'];
  mustHave(await runs([piecework, 'run', ...input, '--exec', 'cat']), '"value":"two"');
  mustHave(await runs([piecework, 'run', ...input, '--handler', 'handler.mjs']), '"value":"two!"');
  mustHave(await runs(['first.mjs'], { REDIS_URL: redis }), 'succeeded');
  await blockLong(at, [...command, 'long-block.mjs'], redis);
}

/** Uses the command line. */
async function useCommandLine(at) {
  writeFileSync(join(at, 'words.txt'), 'one\ntwo\n');
  const args = ['piecework', 'run', '--input', 'words.txt', '--exec', 'cat', '--out', '-'];
  mustHave(await run(at, 'npx', args), '"value":"two"');
}

/** The page is not there; then it is added, as the message says. */
async function usePage(at, tarballs) {
  const dashboard = ['piecework', 'dashboard', '--insecure', '--redis', 'redis://127.0.0.1:1'];
  mustHave(await run(at, 'npx', dashboard, { code: 2 }), 'npm install @piecework/dashboard@');
  if (existsSync(join(at, 'node_modules/fastify'))) throw new Error('fastify came along');
  await install(at, tarballs);
  mustHave(await run(at, 'npx', dashboard, { code: 1 }), 'ECONNREFUSED');
}

const redis = await startRedis();
try {
  await run(root, 'git', ['clone', '--quiet', '.', clone]);
  const version = ['packages/cli/bin/piecework.js', '--version'];
  mustHave(await run(clone, process.execPath, version, { code: 1 }), 'npm run setup');
  const setUp = await run(clone, 'npm', ['run', 'setup']);
  for (const said of [
    'setup: installing',
    'setup: installed in',
    'setup: building',
    'setup: built in',
  ])
    mustHave(setUp, said);
  await run(clone, process.execPath, version);

  const readme = readFileSync(join(clone, 'README.md'), 'utf8');
  const packages = readdirSync(join(clone, 'packages'))
    .map((name) => join(clone, 'packages', name))
    .filter((at) => !JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')).private);
  for (const packer of ['npm', 'pnpm']) {
    const to = join(folder, `by-${packer}`);
    mkdirSync(to);
    const [command, ...args] = packer === 'npm' ? ['npm'] : ['npx', '-y', 'pnpm@12'];
    for (const at of packages) await run(at, command, [...args, 'pack', '--pack-destination', to]);
    const tarballs = readdirSync(to).map((name) => join(to, name));
    const ofTerminals = /piecework-(cli|dashboard|views|embedded|testing)-\d/;
    const library = tarballs.filter((path) => !ofTerminals.test(path));
    await useLibrary(await project(`library-${packer}`, library), redis.url, readme);
    const page = tarballs.filter((path) => /piecework-dashboard-\d/.test(path));
    const withoutPage = tarballs.filter((path) => !page.includes(path));
    const commandLine = await project(`command-line-${packer}`, withoutPage);
    await useCommandLine(commandLine);
    await usePage(commandLine, page);
    const ofTests = tarballs.filter((path) => !/piecework-(cli|dashboard|views)-\d/.test(path));
    const guide = readFileSync(join(clone, 'docs/guide/testing.md'), 'utf8');
    await useTestKit(await project(`test-kit-${packer}`, ofTests, ['vitest@4']), guide);
  }
  const byNpm = readdirSync(join(folder, 'by-npm')).map((name) => join(folder, 'by-npm', name));
  await useJest(await project('jest', byNpm, ['jest@30']));
  // Newer types of Node need TypeScript 5.6.
  await useTypeScript('5.4', byNpm, ['@types/node@20']);
  for (const version of ['5.6', '5.9', '6', '7']) await useTypeScript(version, byNpm);
  const bundlers = ['esbuild@0.28', 'webpack@5', 'webpack-cli@6', 'bun@1'];
  await useBundles(await project('bundles', byNpm, bundlers), redis.url);
  const runtimes = await project('runtimes', byNpm, ['bun@1', 'deno@2']);
  for (const name of ['embedded.mjs', 'long-block.mjs'])
    copyFileSync(installed(name), join(runtimes, name));
  writeFileSync(join(runtimes, 'first.mjs'), firstProgram(readme));
  writeFileSync(join(runtimes, 'words.txt'), 'one\ntwo\n');
  writeFileSync(join(runtimes, 'handler.mjs'), 'export default (word) => word + "!";\n');
  const bin = (name) => join(runtimes, 'node_modules/.bin', name);
  await Promise.all([
    useRuntime(runtimes, [bin('bun')], redis.url),
    useRuntime(runtimes, [bin('deno'), 'run', '-A'], redis.url),
  ]);
  console.log('Everything can be packed, installed and run.');
} finally {
  await redis.close();
  rmSync(folder, { recursive: true, force: true });
}
