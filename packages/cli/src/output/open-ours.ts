import { constants } from 'node:fs';
import { type FileHandle, lstat, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OF_OTHERS } from '../terminal/system-reasons.js';

/** Folders that all may write into, such as /tmp: world-writable and sticky. */
const SHARED = 0o1002;

/**
 * Opens a file. In a folder that all may write into, neither a link nor a file of another user is opened, who may have
 * put it there so that it is overwritten, or read by him. The rule is that of Linux with `fs.protected_symlinks` and
 * `fs.protected_regular`, which some systems leave off: links and files of this user and of the owner of the folder are
 * opened.
 */
export async function openOurs(path: string, flags: number, mode: number): Promise<FileHandle> {
  const folder = await stat(dirname(path));
  if ((folder.mode & SHARED) !== SHARED) return open(path, flags, mode);
  const trusted = [process.getuid?.(), folder.uid];
  const found = await lstat(path).catch(() => undefined);
  if (found && !trusted.includes(found.uid)) throw ofOthers(path);
  // In a sticky folder nobody else replaces a link of this user.
  if (found?.isSymbolicLink()) return open(path, flags, mode);
  // What another user puts there meanwhile is refused as well.
  const file = await open(path, flags | constants.O_NOFOLLOW, mode);
  if (trusted.includes((await file.stat()).uid)) return file;
  await file.close();
  throw ofOthers(path);
}

const ofOthers = (path: string) => Object.assign(new Error(path), { code: OF_OTHERS });
