import { readlinkSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { InvalidOptionError } from '@piecework/protocol/contract';
import { statIfAny, statOfStream } from '../terminal/file-stat.js';

/**
 * Refuses an output that is the same file as an input, such as a file of an earlier run that a pattern matches, or as
 * another output. Files are compared by device and inode, so that other paths, links and redirected streams are found
 * as well. Pipes and devices may be used twice.
 * @param outputs by their flags; '-' is a standard stream
 * @throws InvalidOptionError
 */
export function checkApart(
  inputs: readonly string[],
  outputs: Readonly<Record<string, string | undefined>>,
): void {
  const users = new Map(inputs.map((input) => [fileOf(input, 0), '--input']));
  for (const [flag, output] of Object.entries(outputs)) {
    const file = output === undefined ? undefined : fileOf(output, 1);
    if (file === undefined) continue;
    const user = users.get(file);
    if (user !== undefined)
      throw new InvalidOptionError(flag, output, `another file than that of ${user}`);
    users.set(file, flag);
  }
}

/** The identity of a regular file, also of one that does not exist yet; undefined for anything else. */
function fileOf(path: string, stream: 0 | 1): string | undefined {
  const stat = path === '-' ? statOfStream(stream) : statIfAny(path);
  if (stat) return stat.isFile() ? `${stat.dev}:${stat.ino}` : undefined;
  if (path === '-') return undefined;
  const target = linkOf(path);
  if (target !== undefined) return fileOf(resolve(dirname(path), target), stream);
  const folder = statIfAny(dirname(resolve(path)));
  return folder ? join(`${folder.dev}:${folder.ino}`, basename(path)) : resolve(path);
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
