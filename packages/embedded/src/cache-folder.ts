import { lstat, mkdir, mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import envPaths from 'env-paths';

/**
 * The folder for fetched files: PIECEWORK_CACHE_DIR, else the cache folder of the user, else (for a user without a home)
 * a private folder among the temporary files. It is created if it does not exist.
 * @throws the file system's error when PIECEWORK_CACHE_DIR is set and cannot be written
 */
export async function cacheFolder(env: NodeJS.ProcessEnv): Promise<string> {
  const chosen = env['PIECEWORK_CACHE_DIR'];
  if (chosen) {
    await makeWritable(resolve(chosen));
    return resolve(chosen);
  }
  const usual = envPaths('piecework', { suffix: '' }).cache;
  try {
    await makeWritable(usual);
    return usual;
  } catch {
    return privateTemporaryFolder();
  }
}

async function makeWritable(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // Permission bits are not enough (read-only mounts, root): try to write.
  await rmdir(await mkdtemp(join(folder, '.probe-')));
}

/** Other users can write into the temporary folder: refuse a folder that is not ours, or is a link. */
async function privateTemporaryFolder(): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  const folder = join(tmpdir(), `piecework-cache-${uid}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o077) !== 0) {
    throw new Error(`${folder} is not a private folder of this user: set PIECEWORK_CACHE_DIR`);
  }
  return folder;
}
