// Makes a fresh clone ready: checks Node, installs the dependencies, builds. Needs nothing but
// Node itself. Quiet when all is well; on an unchanged tree it does next to nothing.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OLDEST_NODE = 20;
const root = fileURLToPath(new URL('..', import.meta.url));
const stampFile = join(root, 'node_modules', '.setup-stamp');

/** What the installed dependencies follow from. */
function stamp() {
  const packages = readdirSync(join(root, 'packages')).map(
    (name) => `packages/${name}/package.json`,
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
 * The environment for the package manager. Inside `npm run`, npm describes itself in variables
 * that pnpm would take for its own settings; only where packages come from is passed on.
 */
function installEnvironment() {
  const ofNpm = /^(npm_|INIT_CWD$|NODE_ENV$)/i;
  const source =
    /^npm_config_(registry|@.*|\/\/.*|cache|userconfig|globalconfig|(https?_)?proxy|https-proxy|noproxy|ca|cafile|strict_ssl)$/i;
  const kept = Object.entries(process.env).filter(([n]) => !ofNpm.test(n) || source.test(n));
  // CI: ask no questions.
  return { ...Object.fromEntries(kept), CI: 'true' };
}

/** Runs a command to its end; ends this process with its output when it fails. */
function run(what, command, args, env = process.env) {
  console.log(`setup: ${what}`);
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    env,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  });
  if (status === 0) return;
  console.error(`${stdout ?? ''}${stderr ?? ''}`);
  console.error(
    `setup: failed: ${[command, ...args].join(' ')}${error ? ` (${error.message})` : ''}`,
  );
  process.exit(1);
}

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  console.error(`setup: needs Node ${OLDEST_NODE} or later; this is ${process.versions.node}`);
  process.exit(1);
}
const recorded = existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : '';
if (recorded !== stamp()) {
  const install = ['-y', 'pnpm@12', 'install', '--frozen-lockfile'];
  run('installing the dependencies (once)', 'npx', install, installEnvironment());
  writeFileSync(stampFile, stamp());
}
run('building', join(root, 'node_modules', '.bin', 'tsc'), ['-b']);
