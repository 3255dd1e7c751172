import { existsSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { InvalidOptionError } from '@piecework/protocol/contract';
import { statIfAny, statOfStream } from '../terminal/file-stat.js';

/**
 * Refuses an output that is an input as well, such as a file of an earlier run that a pattern matches, that is below a
 * folder whose files are the items, or that another flag writes. Files are compared by device and inode, so that other
 * paths, links and redirected streams are found as well. Pipes and devices may be used twice.
 * @param outputs by their flags; '-' is a standard stream
 * @throws InvalidOptionError
 */
export function checkApart(
  inputs: readonly string[],
  outputs: Readonly<Record<string, string | undefined>>,
): void {
  const users = new Map(inputs.map((input) => [fileOf(input, 0), '--input']));
  const folders = inputs.map(folderOf);
  for (const [flag, output] of Object.entries(outputs)) {
    if (output === undefined) continue;
    if (output !== '-' && parentsOf(folderPath(output)).some((folder) => folders.includes(folder)))
      throw new InvalidOptionError(flag, output, 'one outside of the folders of --input');
    const file = fileOf(output, 1);
    if (file === undefined) continue;
    const user = users.get(file);
    if (user !== undefined)
      throw new InvalidOptionError(flag, output, `another file than that of ${user}`);
    users.set(file, flag);
  }
}

/** The most links that lead to a file. */
const MOST_LINKS = 40;

/** The identity of a regular file, also of one that does not exist yet; undefined for anything else. */
function fileOf(path: string, stream: 0 | 1, links = MOST_LINKS): string | undefined {
  const stat = path === '-' ? statOfStream(stream) : statIfAny(path);
  if (stat) return stat.isFile() ? `${stat.dev}:${stat.ino}` : undefined;
  if (path === '-') return undefined;
  const target = links > 0 ? linkOf(path) : undefined;
  if (target !== undefined) return fileOf(resolve(dirname(path), target), stream, links - 1);
  const folder = statIfAny(dirname(resolve(path)));
  return folder ? join(`${folder.dev}:${folder.ino}`, basename(path)) : resolve(path);
}

/** The identity of a folder. */
function folderOf(path: string): string | undefined {
  const stat = path === '-' ? undefined : statIfAny(path);
  return stat?.isDirectory() ? `${stat.dev}:${stat.ino}` : undefined;
}

/** The folder of a file, without links as far as it exists. */
function folderPath(path: string): string {
  const folder = dirname(resolve(path));
  return existsSync(folder) ? realpathSync.native(folder) : folder;
}

/** The identities of a folder and of all folders that it is in. */
function parentsOf(folder: string): string[] {
  const above = dirname(folder);
  const here = folderOf(folder);
  return [...(here ? [here] : []), ...(above === folder ? [] : parentsOf(above))];
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
