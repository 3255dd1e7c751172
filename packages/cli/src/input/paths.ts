import { accessSync, constants, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { InvalidOptionError } from '@piecework/protocol/contract';
import { statOf, statOfStream } from '../terminal/file-stat.js';
import { checkApart } from './apart.js';
import type { InputValues } from './input-values.js';
import { isPattern } from './pattern.js';

/** The files and folders of one `--input`. @throws InvalidOptionError */
export async function pathsOf(input: string, allowEmpty: boolean): Promise<string[]> {
  // The name of a file may look like a pattern.
  if (input === '-' || existsSync(input)) return [input];
  if (input.includes(NOT_DECODED)) throw notUtf8Name(input);
  // Loaded only by commands that need it.
  const { glob } = await import('tinyglobby');
  const found = await glob(input, { expandDirectories: false, onlyFiles: true });
  const altered = found.find(isAltered);
  if (altered !== undefined) throw notUtf8Name(altered);
  if (found.length > 0 || (allowEmpty && isPattern(input))) return found.sort();
  const allowed =
    'a file or folder that exists, or a pattern that some file matches (without one: --allow-empty)';
  throw new InvalidOptionError('--input', input, allowed);
}

/** Node decodes bytes that are not UTF-8 as this character, in names of files and in arguments. */
const NOT_DECODED = '\ufffd';

/** Whether Node has altered the path, so that it leads to no file, or to another one. */
const isAltered = (path: string) => path.includes(NOT_DECODED) && !existsSync(path);

const notUtf8Name = (path: string) =>
  new InvalidOptionError(
    '--input',
    path,
    'paths in UTF-8: rename what is not, or pass the content of a file: --input - < FILE',
  );

/** Whether something is piped or redirected into this command. */
export function isPiped(): boolean {
  const stdin = statOfStream(0);
  return stdin !== undefined && (stdin.isFIFO() || stdin.isFile());
}

export const isFolder = (path: string) => path !== '-' && statOf(path).isDirectory();

/** Whether the flags fit together and to what `--input` names. @throws InvalidOptionError */
export function checkFit(named: readonly string[], by: string, values: InputValues): void {
  const { batch, binary, jsonPath, csvDelimiter, csvHeader, badRows } = values;
  const folder = named.find(isFolder);
  if (by === 'files' && named.includes('-'))
    throw new InvalidOptionError('--split', by, 'not files, as standard input is not a file');
  if (by !== 'files' && folder !== undefined) {
    const what = named.length === 1 ? 'the input' : folder;
    throw new InvalidOptionError('--split', by, `files, as ${what} is a folder`);
  }
  if (binary && by !== 'lines' && !by.startsWith('delimiter:') && !by.startsWith('chunk:'))
    throw new InvalidOptionError('--binary', true, 'together with --split lines or delimiter:…');
  if (jsonPath !== undefined && by !== 'json')
    throw new InvalidOptionError('--json-path', jsonPath, 'together with --split json');
  if (batch !== undefined && by.startsWith('chunk:'))
    throw new InvalidOptionError('--batch', batch, 'without --split chunk:N, which does the same');
  if (csvDelimiter !== undefined && by !== 'csv')
    throw new InvalidOptionError('--csv-delimiter', csvDelimiter, 'together with --split csv');
  if (csvHeader !== undefined && by !== 'csv' && by !== 'tsv')
    throw new InvalidOptionError('--csv-header', csvHeader, 'together with --split csv or tsv');
  if (badRows !== undefined && by === 'files')
    throw new InvalidOptionError('--bad-rows', badRows, 'without --split files');
  if (named.filter((path) => path === '-').length > 1)
    throw new InvalidOptionError('--input', '-', 'once: standard input can be read only once');
  for (const path of named) {
    try {
      if (path !== '-') accessSync(path, constants.R_OK);
    } catch {
      throw new InvalidOptionError('--input', path, 'a file that may be read (permission denied)');
    }
  }
  const altered = by === 'files' ? named.map((path) => resolve(path)).find(isAltered) : undefined;
  if (altered !== undefined) throw notUtf8Name(altered);
  const { out, outDir, joblog } = values;
  const outputs = { '--out': out, '--joblog': joblog, '--bad-rows': badRows };
  checkApart(named, { ...outputs, '--out-dir': outDir });
}
