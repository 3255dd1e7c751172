// Builds the image of deploy/docker/Dockerfile: packs the packages of this clone, installs them with what they depend
// on into a folder, and gives that folder to Docker as its context.
//
//   npm run docker:image                                piecework:local, on node:22-slim
//   npm run docker:image -- --tag example/piecework:1 --base node:22-alpine
import { spawnSync } from 'node:child_process';
import {
  cpSync,
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
import { parseArgs } from 'node:util';
import { requireEngine } from './docker-engine.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Of installed packages, only what runs is kept: much of their size are maps, types, sources and documents. */
const UNUSED = /\.(map|ts|mts|cts|md|markdown)$/i;
const LICENCE = /^(licen[cs]e|notice|copying|authors)/i;

/** @throws Error with all that a command said, when it fails */
function run(cwd, command, args) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  });
  if (status === 0) return stdout;
  throw new Error(
    `${[command, ...args].join(' ')}: ${error?.message ?? `exit code ${status}`}\n${stdout}${stderr}`,
  );
}

/** The folders of the command line and of all packages of ours that it needs or, as the dashboard, can use. */
function shipped(name = '@piecework/cli', found = new Map()) {
  const folder = join(root, 'packages', name.replace('@piecework/', ''));
  found.set(name, folder);
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  for (const one of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }))
    if (/^(@piecework\/|piecework$)/.test(one) && !found.has(one)) shipped(one, found);
  return [...found.values()];
}

/** Removes what no program reads. Answers how many bytes are left. */
function slim(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += slim(path);
    else if (UNUSED.test(entry.name) && !LICENCE.test(entry.name)) rmSync(path);
    else if (entry.isFile()) bytes += readFileSync(path).length;
  }
  return bytes;
}

/** @returns the size of the image in bytes */
export function buildImage({ tag = 'piecework:local', base = 'node:22-slim' } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'piecework-image-'));
  try {
    const packed = join(folder, 'packed');
    const context = join(folder, 'context');
    mkdirSync(packed);
    mkdirSync(context);
    for (const at of shipped()) run(at, 'npm', ['pack', '--silent', '--pack-destination', packed]);
    const tarballs = readdirSync(packed).map((name) => join(packed, name));
    writeFileSync(join(context, 'package.json'), '{ "private": true }\n');
    const quiet = [
      '--omit=dev',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '--no-package-lock',
    ];
    run(context, 'npm', ['install', ...quiet, ...tarballs]);
    console.log(`staged ${(slim(join(context, 'node_modules')) / 1e6).toFixed(1)} MB of packages`);
    for (const name of ['Dockerfile', 'piecework'])
      cpSync(join(root, 'deploy/docker', name), join(context, name));
    run(context, 'docker', [
      'build',
      '--quiet',
      '--build-arg',
      `NODE_IMAGE=${base}`,
      '--tag',
      tag,
      '.',
    ]);
    const inspect = (image) =>
      Number(run(root, 'docker', ['image', 'inspect', '--format', '{{.Size}}', image]));
    const size = inspect(tag);
    const own = size - inspect(base);
    const mb = (bytes) => (bytes / 1e6).toFixed(1);
    console.log(`${tag}: ${mb(size)} MB, of which ${mb(own)} MB are added to ${base}`);
    return size;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { tag: { type: 'string' }, base: { type: 'string' } } });
  // First, as the setup takes a minute in a fresh clone.
  requireEngine('no image was built');
  await import('./setup.mjs');
  try {
    buildImage(values);
  } catch (error) {
    console.error(`no image was built: ${error.message}`);
    process.exit(1);
  }
}
