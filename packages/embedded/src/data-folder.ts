import { lstat, mkdir, readlink, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { shownText } from '@piecework/protocol/contract';
import { EmbeddedRedisError } from './embedded-redis-error.js';

/*
 * The folder of a server belongs to this user alone. Who may write into it could replace the data, or have the log
 * written into another file by a link. Who may write into a folder above it could replace all of it. So the folders
 * above are checked like ssh checks those of its files; in a sticky one, such as /tmp, nobody renames what is of others.
 */

const STICKY = 0o1000;
const BY_OTHERS = 0o022;

/** Makes the folder if it does not exist. @throws EmbeddedRedisError when other users could change it */
export async function dataFolder(dir: string): Promise<string> {
  const folder = resolve(dir);
  const above = await whyUnsafe(folder);
  if (above !== undefined) throw refusal(folder, above);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = await stat(folder);
  if (uid !== process.getuid?.()) throw refusal(folder, 'it belongs to another user');
  if ((mode & BY_OTHERS) !== 0)
    throw refusal(folder, `others may write into it; chmod go-w '${folder}'`);
  return folder;
}

/** Why others could replace what is at a path: a reason in a folder above it, or in a link on the way. */
async function whyUnsafe(path: string, links = 0): Promise<string | undefined> {
  const above = dirname(path);
  if (above === path) return undefined;
  const why = await whyUnsafe(above, links);
  if (why !== undefined) return why;
  const [folder, entry] = await Promise.all([stat(above), lstat(path)].map(ifThere));
  const trusted = [0, process.getuid?.()];
  // What does not exist is created by this user, for this user alone.
  if (!folder) return undefined;
  if (!trusted.includes(folder.uid))
    return `${above} belongs to another user, who could replace it`;
  if ((folder.mode & BY_OTHERS) !== 0 && (folder.mode & STICKY) === 0)
    return `others may write into ${above}, and could replace it; chmod go-w '${above}', or choose another folder`;
  if (!entry?.isSymbolicLink()) return undefined;
  if (!trusted.includes(entry.uid)) return `${path} is a link of another user`;
  // The system refuses longer chains.
  if (links === 40) return undefined;
  return whyUnsafe(resolve(above, await readlink(path)), links + 1);
}

const ifThere = <T>(found: Promise<T>): Promise<T | undefined> => found.catch(() => undefined);

const refusal = (folder: string, why: string) =>
  new EmbeddedRedisError('REDIS_NOT_STARTED', shownText(`${folder} cannot hold the data: ${why}`));
