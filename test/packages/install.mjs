// Installs Piecework as its users do, and uses it: clones what is committed here, sets the clone up, packs all
// packages by npm and by pnpm, installs the tarballs into empty folders, and runs the program of README and
// the command line there, and bundles a worker. Needs the registry of npm; takes a few minutes.
//
//   npm run test:install
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
function run(cwd, command, args, { env = {}, code = 0 } = {}) {
  const start = performance.now();
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env: { ...inherited, ...env },
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  });
  const line = [command, ...args]
    .map((word) => word.replace(folder, '…'))
    .join(' ')
    .slice(0, 90);
  if (status !== code)
    throw new Error(`exit code ${status} ${error ?? ''} of: ${line}\n${stdout}${stderr}`);
  console.log(`${((performance.now() - start) / 1_000).toFixed(1).padStart(6)} s  ${line}`);
  return stdout + stderr;
}

function mustHave(said, wanted) {
  if (!said.includes(wanted)) throw new Error(`expected '${wanted}' in:\n${said}`);
}

/** An empty project with these tarballs installed by npm. */
function project(name, tarballs) {
  const at = join(folder, name);
  mkdirSync(at);
  writeFileSync(join(at, 'package.json'), '{ "private": true }\n');
  install(at, tarballs);
  return at;
}

function install(at, tarballs) {
  const said = run(at, 'npm', ['install', '--no-audit', '--no-fund', ...tarballs]);
  // EBADENGINE, when one of the dependencies needs another Node; those of the tools of the tests may.
  if (tarballs.every((name) => name.endsWith('.tgz')) && said.includes('EBADENGINE'))
    throw new Error(`npm warns of the version of Node:\n${said}`);
}

/** Uses the library alone. */
function useLibrary(at, redis, readme) {
  const [, program] = /```js\n(\/\/ first\.mjs\n.*?)```/s.exec(readme);
  writeFileSync(join(at, 'first.mjs'), program);
  mustHave(run(at, process.execPath, ['first.mjs'], { env: { REDIS_URL: redis } }), 'succeeded');
  const required = "console.log(typeof require('piecework').Piecework)";
  mustHave(run(at, process.execPath, ['-e', required]), 'function');
  // It is not the command line, and says so.
  mustHave(run(at, 'npx', ['piecework'], { code: 1 }), 'npm install @piecework/cli');
}

/** Runs the test of docs/guide/testing.md, as a user's project would. */
function useTestKit(at, page) {
  for (const [, code, name] of page.matchAll(/^```ts\n(\/\/ (newsletter\S*\.ts)\n.*?)^```$/gms))
    writeFileSync(join(at, name), code);
  writeFileSync(join(at, 'package.json'), '{ "private": true, "type": "module" }\n');
  mustHave(run(at, 'npx', ['vitest', 'run'], { env: { NO_COLOR: '1' } }), '2 passed');
  const plain = "import('@piecework/testing').then((kit) => console.log(Object.keys(kit).join()))";
  mustHave(run(at, process.execPath, ['-e', plain]), 'assertSucceeded');
}

/** Bundles a worker whose handler blocks for three leases, as docs/guide/bundling.md says, and runs the bundles. */
function useBundles(at, redis) {
  const source = fileURLToPath(new URL('bundled-worker.mjs', import.meta.url));
  writeFileSync(join(at, 'bundled-worker.mjs'), readFileSync(source));
  const empty = join(folder, 'empty');
  mkdirSync(empty, { recursive: true });
  const require = 'const require = createRequire(import.meta.url);';
  const banner = `--banner:js=import { createRequire } from 'node:module'; ${require}`;
  const esbuild = ['esbuild', 'bundled-worker.mjs', '--bundle', '--platform=node'];
  const bun = ['bun', 'build', 'bundled-worker.mjs', '--target=node'];
  const webpack = ['webpack', '--mode', 'production', '--target', 'node'];
  const bundles = [
    ['esbuild.cjs', (out) => [...esbuild, '--format=cjs', `--outfile=${out}`]],
    ['esbuild.mjs', (out) => [...esbuild, '--format=esm', banner, `--outfile=${out}`]],
    ['bun.cjs', (out) => [...bun, '--format=cjs', `--outfile=${out}`]],
    ['bun.mjs', (out) => [...bun, `--outfile=${out}`]],
    ['main.js', () => [...webpack, '--entry', './bundled-worker.mjs', '-o', empty]],
  ];
  for (const [name, command] of bundles) {
    run(at, 'npx', command(join(empty, name)));
    const said = run(empty, process.execPath, [name], { env: { REDIS_URL: redis } });
    mustHave(said, 'succeeded, runs: 1, health: ready');
  }
}

/** Uses the command line. */
function useCommandLine(at) {
  writeFileSync(join(at, 'words.txt'), 'one\ntwo\n');
  const args = ['piecework', 'run', '--input', 'words.txt', '--exec', 'cat', '--out', '-'];
  mustHave(run(at, 'npx', args), '"value":"two"');
}

/** The page is not there; then it is added, as the message says. */
function usePage(at, tarballs) {
  const dashboard = ['piecework', 'dashboard', '--insecure', '--redis', 'redis://127.0.0.1:1'];
  mustHave(run(at, 'npx', dashboard, { code: 2 }), 'npm install @piecework/dashboard@');
  if (existsSync(join(at, 'node_modules/fastify'))) throw new Error('fastify came along');
  install(at, tarballs);
  mustHave(run(at, 'npx', dashboard, { code: 1 }), 'ECONNREFUSED');
}

const redis = await startRedis();
try {
  run(root, 'git', ['clone', '--quiet', '.', clone]);
  const bin = ['packages/cli/bin/piecework.js', '--version'];
  mustHave(run(clone, process.execPath, bin, { code: 1 }), 'npm run setup');
  const setUp = run(clone, 'npm', ['run', 'setup']);
  for (const said of [
    'setup: installing',
    'setup: installed in',
    'setup: building',
    'setup: built in',
  ])
    mustHave(setUp, said);
  run(clone, process.execPath, bin);

  const readme = readFileSync(join(clone, 'README.md'), 'utf8');
  const packages = readdirSync(join(clone, 'packages'))
    .map((name) => join(clone, 'packages', name))
    .filter((at) => !JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')).private);
  for (const packer of ['npm', 'pnpm']) {
    const to = join(folder, `by-${packer}`);
    mkdirSync(to);
    const [command, ...args] = packer === 'npm' ? ['npm'] : ['npx', '-y', 'pnpm@12'];
    for (const at of packages) run(at, command, [...args, 'pack', '--pack-destination', to]);
    const tarballs = readdirSync(to).map((name) => join(to, name));
    const ofTerminals = /piecework-(cli|dashboard|views|embedded|testing)-\d/;
    const library = tarballs.filter((path) => !ofTerminals.test(path));
    useLibrary(project(`library-${packer}`, library), redis.url, readme);
    const page = tarballs.filter((path) => /piecework-dashboard-\d/.test(path));
    const withoutPage = tarballs.filter((path) => !page.includes(path));
    const commandLine = project(`command-line-${packer}`, withoutPage);
    useCommandLine(commandLine);
    usePage(commandLine, page);
    const ofTests = tarballs.filter((path) => !/piecework-(cli|dashboard|views)-\d/.test(path));
    const guide = readFileSync(join(clone, 'docs/guide/testing.md'), 'utf8');
    useTestKit(project(`test-kit-${packer}`, [...ofTests, 'vitest@4']), guide);
  }
  const byNpm = readdirSync(join(folder, 'by-npm')).map((name) => join(folder, 'by-npm', name));
  const ofLibrary = byNpm.filter(
    (path) => !/piecework-(cli|dashboard|views|embedded|testing)-\d/.test(path),
  );
  const bundlers = ['esbuild@0.28', 'webpack@5', 'webpack-cli@7', 'bun@1'];
  useBundles(project('bundles', [...ofLibrary, ...bundlers]), redis.url);
  console.log('Everything can be packed, installed and run.');
} finally {
  await redis.close();
  rmSync(folder, { recursive: true, force: true });
}
