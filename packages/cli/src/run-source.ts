import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { split } from '@piecework/producer';
import type { WorkValues } from './work.js';

interface SourceValues extends WorkValues {
  readonly split?: string;
  readonly batch?: number;
  readonly binary: boolean;
}

/**
 * Names what a run does: the content of its inputs, how they are split, and the command. Two runs of one id whose
 * names differ are not the same. What a handler's file or a program holds is not looked at, so that it can be
 * mended; of standard input, and of anything else that can be read only once, its user's word is taken.
 */
export async function sourceOf(values: SourceValues, paths: readonly string[]): Promise<string> {
  const { split: by, batch, binary, handler, exec, execInput, execOutput, persistent } = values;
  const fields = values.execFields === undefined ? [] : [values.execFields];
  const script = handler === undefined ? null : resolve(handler);
  const work = [script, exec, execInput, execOutput, persistent, ...fields];
  const hash = createHash('sha256').update(JSON.stringify([by, batch, binary, work]));
  for (const path of paths) {
    const stat = path === '-' ? undefined : statSync(path);
    if (stat?.isDirectory()) for await (const file of split.files(path)) hash.update(`${file}\0`);
    else if (stat?.isFile()) for await (const bytes of createReadStream(path)) hash.update(bytes);
  }
  return hash.digest('base64url');
}
