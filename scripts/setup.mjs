// Prepares a fresh clone: checks Node, installs the dependencies, builds. Needs nothing but Node. Reports each step and
// its time. On an unchanged tree it does next to nothing.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OLDEST_NODE = 20;
/** Longest time without a message, in ms. */
const STILL_MS = 20_000;
const root = fileURLToPath(new URL('..', import.meta.url));
const stampFile = join(root, 'node_modules', '.setup-stamp');

/** The files that determine the installed dependencies. */
function stamp() {
  const packages = ['packages', 'tools'].flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}/package.json`),
  );
  const inputs = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', ...packages.sort()];
  const hash = createHash('sha256').update(`node ${process.versions.modules}\n`);
  for (const input of inputs) {
    const file = join(root, input);
    if (existsSync(file)) hash.update(`${input}\n`).update(readFileSync(file));
  }
  return hash.digest('hex');
}

/**
 * The environment for the package manager. Inside `npm run`, npm sets variables that pnpm would read as its own
 * settings; only those that say where packages come from are passed on.
 */
function installEnvironment() {
  const ofNpm = /^(npm_|INIT_CWD$|NODE_ENV$)/i;
  const source =
    /^npm_config_(registry|@.*|\/\/.*|cache|userconfig|globalconfig|(https?_)?proxy|https-proxy|noproxy|ca|cafile|strict_ssl)$/i;
  const kept = Object.entries(process.env).filter(([n]) => !ofNpm.test(n) || source.test(n));
  // CI: ask no questions.
  return { ...Object.fromEntries(kept), CI: 'true' };
}

const seconds = (sinceMs) => `${((performance.now() - sinceMs) / 1_000).toFixed(0)} s`;

/**
 * Runs a command to its end, and reports its begin, that it still runs, and its time. When it fails, prints the
 * command's output and ends this process.
 */
async function run([doing, done, cure], command, args, env = process.env) {
  const start = performance.now();
  console.log(`setup: ${doing} …`);
  const still = setInterval(
    () => console.log(`setup: still ${doing}, ${seconds(start)}`),
    STILL_MS,
  );
  const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
  const [status, why] = await new Promise((resolve) => {
    child.once('error', (error) => resolve([1, ` (${error.message})`]));
    child.once('close', (code, signal) => resolve([code, signal ? ` (${signal})` : '']));
  });
  clearInterval(still);
  if (status === 0) {
    console.log(`setup: ${done} in ${seconds(start)}`);
    return;
  }
  console.error(said);
  console.error(`setup: failed after ${seconds(start)}: ${[command, ...args].join(' ')}${why}`);
  console.error(`setup: ${cure}`);
  process.exit(1);
}

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  console.error(`setup: needs Node ${OLDEST_NODE} or later; this is ${process.versions.node}`);
  process.exit(1);
}
const recorded = existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : '';
if (recorded !== stamp()) {
  const install = ['-y', 'pnpm@12', 'install', '--frozen-lockfile', '--ignore-scripts'];
  const words = [
    'installing the dependencies',
    'installed',
    'They come from the registry of npm (npm config get registry). Once it can be reached, run this again.',
  ];
  await run(words, 'npx', install, installEnvironment());
  writeFileSync(stampFile, stamp());
}
await import('./stale-output.mjs');
await run(
  ['building', 'built', 'The sources do not compile; the first line above says where.'],
  join(root, 'node_modules', '.bin', 'tsc'),
  ['-b'],
);
await import('./build-page.mjs');
await import('./build-thread.mjs');
await import('./ship-lua.mjs');
