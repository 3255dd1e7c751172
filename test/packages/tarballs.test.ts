import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { buildScript, scriptNames, shaOf } from '../../scripts/lua-source.mjs';

/*
 * What would be published: packed by npm, laid out as an installation would be. Whatever they depend on is
 * that of this clone, so nothing is fetched; `npm run test:install` installs the tarballs from the registry.
 */

const root = fileURLToPath(new URL('../../', import.meta.url));
const NAMES = [
  'protocol',
  'producer',
  'worker',
  'notifier',
  'queues',
  'embedded',
  'piecework',
  'metrics',
  'views',
  'dashboard',
  'cli',
];
const ONLY_FOR_TERMINALS = [
  '@bomb.sh/tab',
  'cli-progress',
  'cli-truncate',
  'commander',
  'pretty-ms',
];

const ONLY_FOR_THE_PAGE = ['fastify', '@fastify/rate-limit', 'helmet', 'bcryptjs', 'zod'];

/** The package that a line of code imports from. */
const IMPORT =
  /(?:^(?:import|export|\}).* from |^import |\bimport\()['"]((?:@[\w.-]+\/)?[\w.:-]+)/gm;

interface Manifest {
  name: string;
  version: string;
  exports: Record<string, string | Record<string, string>>;
  bin?: Record<string, string>;
  dependencies: Record<string, string>;
  [field: string]: unknown;
}
/** Of scripts.json. */
interface Script {
  readonly sha1: string;
  readonly file: string;
  readonly args: readonly { readonly name: string; readonly type: string }[];
  readonly replies: readonly { readonly word: string; readonly fields: readonly object[] }[];
}
interface Packed {
  readonly manifest: Manifest;
  readonly files: readonly string[];
}

let folder: string;
const packed = new Map<string, Packed>();

function run(command: string, args: readonly string[], cwd: string) {
  // NODE_PATH, which pnpm sets for vitest, would lend them what they do not depend on.
  const { NODE_PATH: _, ...inherited } = process.env;
  const env = { ...inherited, npm_config_update_notifier: 'false' };
  return spawnSync(command, args, { cwd, env, encoding: 'utf8', maxBuffer: 64 << 20 });
}

const installed = (name: string) => join(folder, 'node_modules', name);

/** Puts a package where npm would, with the dependencies that it names and no others beside it. */
function install(short: string, tarball: string, files: readonly string[]): void {
  const { name } = JSON.parse(readFileSync(join(root, 'packages', short, 'package.json'), 'utf8'));
  mkdirSync(installed(name), { recursive: true });
  const { status, stderr } = run('tar', ['-xzf', tarball, '--strip-components=1'], installed(name));
  expect(status, stderr).toBe(0);
  const manifest = JSON.parse(
    readFileSync(join(installed(name), 'package.json'), 'utf8'),
  ) as Manifest;
  for (const dependency of Object.keys(manifest.dependencies)) {
    if (dependency === 'piecework' || dependency.startsWith('@piecework/')) continue;
    const link = join(installed(name), 'node_modules', dependency);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, 'packages', short, 'node_modules', dependency), link);
  }
  packed.set(short, { manifest, files });
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'piecework-packed-'));
  // As `prepack` does: the build leaves what it made of sources that were moved since.
  run('node', ['scripts/stale-output.mjs'], root);
  const paths = NAMES.map((name) => `./packages/${name}`);
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder, ...paths];
  const { status, stdout, stderr } = run('npm', args, root);
  expect(status, stderr).toBe(0);
  const answer = JSON.parse(stdout) as object;
  const tarballs = Object.values(answer) as {
    name: string;
    filename: string;
    files: { path: string }[];
  }[];
  for (const short of NAMES) {
    const name = short === 'piecework' ? short : `@piecework/${short}`;
    const one = tarballs.find((tarball) => tarball.name === name);
    if (!one) throw new Error(`npm pack made no tarball of ${name}`);
    install(
      short,
      join(folder, one.filename),
      one.files.map(({ path }) => path),
    );
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(NAMES)('the tarball of %s', (short) => {
  const get = () => packed.get(short) as Packed;

  it('names versions that a registry has, and says what a registry shows', () => {
    const { manifest } = get();
    expect(JSON.stringify(manifest)).not.toContain('workspace:');
    for (const [name, range] of Object.entries(manifest.dependencies))
      if (name === 'piecework' || name.startsWith('@piecework/'))
        expect(range).toBe(manifest.version);
    expect(manifest).toMatchObject({
      license: 'MIT',
      repository: { type: 'git', directory: `packages/${short}` },
      publishConfig: { access: 'public' },
      engines: { node: '>=20' },
    });
    for (const field of ['description', 'keywords', 'homepage', 'bugs', 'author'])
      expect(manifest[field], field).toBeTruthy();
  });

  it('has its licence, its README, and every file that its manifest names', () => {
    const { manifest, files } = get();
    expect(manifest.exports['./package.json']).toBe('./package.json');
    const named = [
      ...Object.values(manifest.exports).flatMap((target) =>
        typeof target === 'string' ? [target] : Object.values(target),
      ),
      ...Object.values(manifest.bin ?? {}),
    ].map((path) => normalize(path));
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', ...named]));
  });

  it('has the sources of its maps, and nothing of the build', () => {
    const { manifest, files } = get();
    const at = installed(manifest.name);
    const rest = files.filter((path) => !/^(dist|src|bin)\//.test(path));
    expect(rest.sort()).toEqual(['LICENSE', 'README.md', 'package.json']);
    expect(files.filter((path) => path.includes('tsbuildinfo'))).toEqual([]);
    const maps = files.filter((path) => path.endsWith('.map'));
    expect(maps.length).toBeGreaterThan(0);
    const missing = maps.flatMap((map) =>
      (JSON.parse(readFileSync(join(at, map), 'utf8')).sources as string[])
        .map((source) => join(dirname(map), source))
        .filter((source) => !files.includes(source)),
    );
    expect(missing).toEqual([]);
  });

  it('depends on every package that it imports', () => {
    const { manifest, files } = get();
    const imported = files
      .filter((path) => /^dist\/.*\.(js|d\.ts)$/.test(path))
      .flatMap((path) => [
        ...readFileSync(join(installed(manifest.name), path), 'utf8').matchAll(IMPORT),
      ])
      .map(([, name]) => name as string)
      .filter((name) => !name.startsWith('.') && !name.startsWith('node:'));
    const known = { ...manifest.dependencies, ...(manifest['peerDependencies'] as object) };
    expect([...new Set(imported)].filter((name) => !(name in known))).toEqual([]);
    expect(imported.length).toBeGreaterThan(0);
  });
});

describe('the protocol', () => {
  it('has each script as a file for other languages, and says how to call it', () => {
    const { name } = (packed.get('protocol') as Packed).manifest;
    const require = createRequire(join(folder, 'user.cjs'));
    const at = dirname(require.resolve(`${name}/scripts.json`));
    const scripts = require(`${name}/scripts.json`) as Record<string, Script>;
    expect(Object.keys(scripts)).toEqual(scriptNames);
    for (const script of scriptNames) {
      const { sha1, file } = scripts[script] as Script;
      expect(sha1, script).toBe(buildScript(script, 'server').sha);
      expect(shaOf(readFileSync(join(at, file), 'utf8')), script).toBe(sha1);
    }
    expect(scripts['schedule-tend']).toMatchObject({
      keys: [
        { name: 'open', type: 'hash' },
        { name: 'agenda', type: 'zset' },
      ],
      args: [
        { name: 'id', type: 'string' },
        { name: 'generation', type: 'int' },
        { name: 'time', type: 'int' },
        { name: 'afterMs', type: 'int?' },
      ],
      replies: [
        { word: 'noted', fields: [] },
        { word: 'closed', fields: [] },
      ],
    });
    const enter = scripts['enter'] as Script;
    expect(enter).toMatchObject({ each: true });
    expect(enter.args.every(({ name, type }) => name && type)).toBe(true);
    const { replies } = scripts['take'] as Script;
    const each = ['entry', 'payload', 'tries', 'crashes', 'checkpoint', 'company'];
    const entries = { name: 'entries', repeated: true, each: each.map((name) => ({ name })) };
    expect(replies.find(({ word }) => word === 'ok')?.fields.at(-1)).toMatchObject(entries);
  });
});

/** What an installation of a package brings along, by the dependencies of ours. */
const wanted = (short: string): string[] =>
  Object.keys(packed.get(short)?.manifest.dependencies ?? {}).flatMap((name) => [
    name,
    ...wanted(name.replace('@piecework/', '')),
  ]);

describe('the library', () => {
  it('brings nothing along that only a terminal needs', () => {
    const all = wanted('piecework');
    expect(all).toContain('ioredis');
    expect(all.filter((name) => ONLY_FOR_TERMINALS.includes(name))).toEqual([]);
    expect(all).not.toContain('@piecework/embedded');
  });

  it('can be imported, and required where Node can', () => {
    const print = 'console.log(typeof m.Piecework, typeof m.Worker)';
    const esm = ['--input-type=module', '-e', `import * as m from 'piecework'; ${print}`];
    expect(run(process.execPath, esm, folder)).toMatchObject({ stdout: 'function function\n' });
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    if (major === 20 ? minor < 19 : major === 22 && minor < 12) return;
    const cjs = ['-e', `const m = require('piecework'); ${print}`];
    expect(run(process.execPath, cjs, folder)).toMatchObject({ stdout: 'function function\n' });
  });

  it('hands its command over to @piecework/cli, and else says how to get that', () => {
    const bin = join(installed('piecework'), 'bin', 'piecework.js');
    const { version } = (packed.get('cli') as Packed).manifest;
    expect(run(process.execPath, [bin, '--version'], folder)).toMatchObject({
      status: 0,
      stdout: `${version}\n`,
    });
    // Where nothing else is installed.
    const alone = mkdtempSync(join(tmpdir(), 'piecework-alone-'));
    onTestFinished(() => rmSync(alone, { recursive: true }));
    cpSync(installed('piecework'), alone, { recursive: true, verbatimSymlinks: true });
    const { status, stdout, stderr } = run(process.execPath, ['bin/piecework.js', 'run'], alone);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('npm install @piecework/cli');
  });
});

describe('the command line', () => {
  const NAME = '@piecework/dashboard';
  const piecework = (args: readonly string[], at = folder) =>
    run(process.execPath, [join(at, 'node_modules/@piecework/cli/bin/piecework.js'), ...args], at);

  /** Moves something of the installation until the end of the test. */
  function moved(from: string, to: string): void {
    mkdirSync(dirname(to), { recursive: true });
    renameSync(from, to);
    onTestFinished(() => renameSync(to, from));
  }

  it('brings no web server along', () => {
    const all = wanted('cli');
    expect(all).toContain('@piecework/views');
    expect(all.filter((name) => [NAME, ...ONLY_FOR_THE_PAGE].includes(name))).toEqual([]);
    expect(wanted('dashboard')).toEqual(expect.arrayContaining(ONLY_FOR_THE_PAGE));
  });

  it.each([
    ['dashboard', ['dashboard', '--insecure']],
    ['dev --dashboard', ['dev', '--dashboard', '--dashboard-port', '0']],
  ])('%s without the page: says how to install it, and starts nothing', (command, args) => {
    const { version } = (packed.get('cli') as Packed).manifest;
    moved(installed(NAME), join(folder, 'elsewhere'));
    const { status, stdout, stderr } = piecework(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toBe(
      `piecework: ${command} needs the package ${NAME} ${version}, which is not installed. ` +
        `Install it where @piecework/cli is:\n  npm install ${NAME}@${version}\n`,
    );
    const { error } = JSON.parse(piecework([...args, '--json']).stderr);
    expect(error.code).toBe('NOT_INSTALLED');
  });

  it('dashboard without the page, by npx: says how npx gets both', () => {
    const at = join(folder, '_npx', '0123');
    moved(installed(NAME), join(folder, 'elsewhere'));
    moved(join(folder, 'node_modules'), join(at, 'node_modules'));
    const { status, stderr } = piecework(['dashboard', '--insecure'], at);
    expect(status).toBe(2);
    expect(stderr).toMatch(
      /\. Have npx fetch both:\n {2}npx -p @piecework\/cli -p @piecework\/dashboard piecework dashboard\n$/,
    );
  });

  it('dashboard with the page of another version: names both versions', () => {
    const { version } = (packed.get('cli') as Packed).manifest;
    const manifest = join(installed(NAME), 'package.json');
    const text = readFileSync(manifest, 'utf8');
    onTestFinished(() => writeFileSync(manifest, text));
    writeFileSync(manifest, text.replace(`"version": "${version}"`, '"version": "9.9.9"'));
    const { status, stderr } = piecework(['dashboard', '--insecure']);
    expect(status).toBe(2);
    expect(stderr).toContain(`needs the package ${NAME} ${version}, but 9.9.9 is installed.`);
  });

  it('dashboard with the page: goes on to Redis', () => {
    const args = ['dashboard', '--insecure', '--redis', 'redis://127.0.0.1:1', '--json'];
    const { error } = JSON.parse(piecework(args).stderr);
    expect(error.code).toBe('CONNECTION');
  });
});

describe('a clone that is not built', () => {
  it.each(['cli', 'piecework'])('says what to run first: packages/%s/bin/piecework.js', (short) => {
    const clone = mkdtempSync(join(tmpdir(), 'piecework-clone-'));
    onTestFinished(() => rmSync(clone, { recursive: true }));
    for (const path of ['cli/bin', 'piecework/bin', 'piecework/tsconfig.json'])
      cpSync(join(root, 'packages', path), join(clone, 'packages', path), { recursive: true });
    const program = join(clone, 'packages', short, 'bin', 'piecework.js');
    const { status, stdout, stderr } = run(process.execPath, [program, 'list'], tmpdir());
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toBe(
      `piecework: this clone is not built yet. Once: cd ${clone}/ && npm run setup\n`,
    );
  });
});
