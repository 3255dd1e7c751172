import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type AptArchive, aptArchive } from './apt-archive.js';
import { cacheFolder } from './cache-folder.js';
import { type Machine, osReleaseValue } from './machine.js';
import { findOnPath } from './run-command.js';
import {
  executableServer,
  isRecentEnough,
  type ServerProgram,
  versionOf,
} from './server-program.js';

/*
 * A server from the packages of Debian or Ubuntu, unpacked into the cache folder instead of being installed. The work is
 * done in a working folder beside the final one, which is renamed at the end: so the final folder is either absent or
 * contains a server that has run once. Processes that fetch at the same time each use their own working folder, and the
 * first rename wins.
 */

/** A working folder this old belongs to a process that was killed. */
const ABANDONED_AFTER_MS = 3_600_000;

/** The server first, then the package that may hold its executable. */
const PACKAGES = [
  ['redis-server', 'redis-tools'],
  ['valkey-server', 'valkey-tools'],
] as const;

export async function fetchedServer(
  machine: Machine,
  onStatus: (text: string) => void,
): Promise<ServerProgram | undefined> {
  const { env, osRelease } = machine;
  if (!isDebianLike(osRelease)) return undefined;
  for (const tool of ['apt-get', 'apt-cache', 'dpkg-deb']) {
    if ((await findOnPath(tool, env)) === undefined) return undefined;
  }
  try {
    const home = join(await cacheFolder(env), serverFolderName(osRelease));
    const present = await unpackedServer(home, env);
    if (present) return present;
    onStatus(`no Redis is installed: fetching one from the system's package archive into ${home}`);
    await fetchInto(home, env);
    return await unpackedServer(home, env);
  } catch (error) {
    onStatus(`no Redis was fetched: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

function isDebianLike(osRelease: string): boolean {
  const ids = `${osReleaseValue(osRelease, 'ID')} ${osReleaseValue(osRelease, 'ID_LIKE')}`.split(
    ' ',
  );
  return ids.includes('debian') || ids.includes('ubuntu');
}

/** One folder for each release and processor: a server for one may not run on another. */
function serverFolderName(osRelease: string): string {
  const [id, version] = ['ID', 'VERSION_ID'].map((name) => osReleaseValue(osRelease, name));
  return `redis-${id}-${version || 'rolling'}-${process.arch}`;
}

async function fetchInto(home: string, env: NodeJS.ProcessEnv): Promise<void> {
  await removeAbandoned(dirname(home));
  const working = await mkdtemp(`${home}.fetching-`);
  try {
    const root = join(working, 'root');
    await mkdir(root);
    await unpackServer(working, root, env);
    await rename(root, home).catch(async () => {
      // Another process was faster, or the server there is damaged.
      if ((await unpackedServer(home, env)) !== undefined) return;
      await rename(home, join(working, 'replaced'));
      await rename(root, home);
    });
  } finally {
    await rm(working, { recursive: true, force: true });
  }
}

/** Tries the package lists of the system first: fetching our own takes much longer. */
async function unpackServer(working: string, root: string, env: NodeJS.ProcessEnv): Promise<void> {
  let fault = 'the package archive has no redis-server';
  for (const lists of ['system', 'own'] as const) {
    const archive = await aptArchive(working, lists, env);
    if (lists === 'own') await archive.refresh();
    const versions = await Promise.all(PACKAGES.map(([server]) => archive.version(server)));
    const packages = PACKAGES.find((_, i) => isRecentEnough(versions[i] ?? '0'));
    if (packages) {
      const problem = await unpackWithLibraries(archive, packages, root, env);
      if (problem === undefined) return;
      fault = problem;
    } else if (versions.some((version) => version !== undefined)) {
      throw new Error(`the package archive's server is too old (${versions.find(Boolean)})`);
    }
  }
  throw new Error(fault);
}

/** @returns what went wrong, or undefined */
async function unpackWithLibraries(
  archive: AptArchive,
  packages: readonly string[],
  root: string,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const unpacked = new Set<string>();
  let next: readonly string[] = packages;
  // Libraries need further libraries: fetch one more level as long as the server does not run.
  while (next.length > 0) {
    const problem = await archive.unpack(next, root);
    if (problem !== undefined) return problem;
    for (const name of next) unpacked.add(name);
    if ((await unpackedServer(root, env)) !== undefined) return undefined;
    next = (await archive.missingLibraries([...unpacked])).filter((name) => !unpacked.has(name));
  }
  return `${packages[0]} was unpacked, but does not run`;
}

/** The server unpacked below `root`, if there is one and it runs. */
async function unpackedServer(
  root: string,
  env: NodeJS.ProcessEnv,
): Promise<ServerProgram | undefined> {
  const needs = { LD_LIBRARY_PATH: (await libraryFolders(root)).join(':') };
  for (const [server] of PACKAGES) {
    const file = join(root, 'usr', 'bin', server);
    const version = await versionOf(file, { ...env, ...needs });
    if (version !== undefined) return executableServer('fetched', file, version, needs);
  }
  return undefined;
}

async function libraryFolders(root: string): Promise<string[]> {
  const found: string[] = [];
  for (const parent of [join(root, 'usr', 'lib'), join(root, 'lib')]) {
    const names = await readdir(parent).catch(() => []);
    found.push(parent, ...names.filter((n) => n.includes('-linux-')).map((n) => join(parent, n)));
  }
  return found;
}

async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.includes('.fetching-')) continue;
    const path = join(folder, name);
    const made = await stat(path).catch(() => undefined);
    if (made && Date.now() - made.mtimeMs > ABANDONED_AFTER_MS) {
      await rm(path, { recursive: true, force: true });
    }
  }
}
