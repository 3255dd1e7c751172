import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { split } from '@piecework/producer/items';
import { statOf } from '../terminal/file-stat.js';
import type { WorkValues } from '../work/check-work.js';

interface SourceValues extends WorkValues {
  readonly split?: string;
  readonly jsonPath?: string;
  readonly batch?: number;
  readonly binary: boolean;
  readonly csvDelimiter?: string;
  readonly csvHeader?: string;
}

/**
 * A hash of what a run does: the content of its inputs, how they are split, and the command. Two runs of one id with
 * different hashes are not the same run. The hash leaves out the content of a handler's file or a program, so that they
 * can be corrected, and of inputs that can be read only once, such as standard input: the user has to give the same.
 */
export async function sourceOf(values: SourceValues, paths: readonly string[]): Promise<string> {
  const { split: by, jsonPath, batch, binary, handler } = values;
  const { exec, execInput, execOutput, persistent } = values;
  const fields = values.execFields === undefined ? [] : [values.execFields];
  const script = handler === undefined ? null : resolve(handler);
  const work = [script, exec, execInput, execOutput, persistent, ...fields];
  const { csvDelimiter, csvHeader } = values;
  const how = [by, jsonPath, csvDelimiter, csvHeader, batch, binary];
  const hash = createHash('sha256').update(JSON.stringify([...how, work]));
  for (const path of paths) {
    const stat = path === '-' ? undefined : statOf(path);
    if (stat?.isDirectory()) for await (const file of split.files(path)) hash.update(`${file}\0`);
    else if (stat?.isFile()) for await (const bytes of createReadStream(path)) hash.update(bytes);
  }
  return hash.digest('base64url');
}
