import { rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { InvalidOptionError } from '@piecework/protocol/contract';
import { Output, OutputError } from './output.js';

/**
 * Writes what would be lost into a new file, in the first of three folders with enough room. `write` closes the output.
 * @returns the path; undefined: there is no room anywhere
 */
export async function writeOwnFile(
  name: string,
  write: (output: Output) => Promise<void>,
): Promise<string | undefined> {
  for (const folder of [tmpdir(), homedir(), process.cwd()]) {
    const path = join(folder, name);
    try {
      const output = await Output.create(path);
      try {
        await write(output);
        return path;
      } catch (error) {
        await rm(path, { force: true });
        throw error;
      }
    } catch (error) {
      if (!(error instanceof OutputError || error instanceof InvalidOptionError)) throw error;
    }
  }
  return undefined;
}
