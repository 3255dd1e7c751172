import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { split } from '@piecework/producer';
import type { WorkValues } from './work.js';

interface SourceValues extends WorkValues {
  readonly input?: string;
  readonly split?: string;
}

/**
 * Names what a run does: the content of its input, how it is split, and the command. Two runs of one id whose
 * names differ are not the same. What a handler's file or a program holds is not looked at, so that it can be
 * mended; of standard input, and of anything else that can be read only once, its user's word is taken.
 */
export async function sourceOf(values: SourceValues): Promise<string> {
  const { input = '', handler, exec, execOutput, persistent } = values;
  const work = [handler === undefined ? null : resolve(handler), exec, execOutput, persistent];
  const hash = createHash('sha256').update(JSON.stringify([values.split, work]));
  const stat = input === '-' ? undefined : statSync(input);
  if (stat?.isDirectory()) for await (const path of split.files(input)) hash.update(`${path}\0`);
  else if (stat?.isFile()) for await (const bytes of createReadStream(input)) hash.update(bytes);
  return hash.digest('base64url');
}
