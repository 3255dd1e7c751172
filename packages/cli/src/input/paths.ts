import {
  accessSync,
  type BigIntStats,
  constants,
  type Dirent,
  existsSync,
  lstatSync,
  type PathLike,
  readdir,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { InvalidOptionError } from '@piecework/protocol/contract';
import { isHidden, statOf, statOfStream } from '../terminal/file-stat.js';
import { say } from '../terminal/print.js';
import { checkApart } from './apart.js';
import type { InputValues } from './input-values.js';
import { isPattern } from './pattern.js';
import { Skipped } from './skipped.js';

/** The paths of all inputs, each once. Says how many of an input are left out. @throws InvalidOptionError */
export async function namedPaths(
  inputs: readonly string[],
  allowEmpty: boolean,
  json: boolean,
): Promise<string[]> {
  const named: string[] = [];
  const places = new Set<string>();
  for (const input of inputs) {
    const skipped = new Skipped();
    try {
      for (const path of await pathsOf(input, allowEmpty, skipped)) {
        const place = resolve(path);
        // Standard input is refused the second time.
        if (path !== '-' && places.has(place)) skipped.add('named twice');
        else named.push(path);
        if (path === '-' && process.stdin.isTTY && !json)
          say('reading items from this terminal, one a line; Ctrl-D ends the input');
        if (path !== '-') places.add(place);
      }
    } finally {
      if (!json) skipped.say(input);
    }
  }
  return named;
}

/**
 * The files and folders of one `--input`.
 * @param skipped counts what a pattern matches that is no file
 * @throws InvalidOptionError
 */
async function pathsOf(input: string, allowEmpty: boolean, skipped: Skipped): Promise<string[]> {
  // The name of a file may look like a pattern.
  if (input === '-' || existsSync(input)) return [input];
  if (isHidden(input)) throw unreadable(input, dirname(resolve(input)));
  if (input.includes(NOT_DECODED)) throw notUtf8Name(input);
  const found = await matching(input);
  const altered = found.find(isAltered);
  if (altered !== undefined) throw notUtf8Name(altered);
  const files = filesOf(input, found, skipped);
  if (files.length > 0 || (allowEmpty && isPattern(input))) return files;
  const allowed =
    'a file or folder that exists, or a pattern that some file matches (without one: --allow-empty)';
  throw new InvalidOptionError('--input', input, allowed);
}

/** All paths that a pattern matches, whatever is there, in their order. @throws InvalidOptionError */
async function matching(input: string): Promise<string[]> {
  // Loaded only by commands that need it.
  const { glob } = await import('tinyglobby');
  const denied: string[] = [];
  // The library leaves out silently what is no file, and folders that it cannot read.
  const all = (path: PathLike, _: unknown, done: (error: unknown, entries?: Dirent[]) => void) =>
    readdir(path, { withFileTypes: true }, (error, entries) => {
      if (error?.code === 'EACCES') denied.push(String(path));
      if (error) return done(error);
      const walked = (entry: Dirent) => entry.isDirectory() || entry.isSymbolicLink();
      done(null, [...entries.map(asFile), ...entries.filter(walked)]);
    });
  const fs = { readdir: all as typeof readdir };
  const found = await glob(input, { expandDirectories: false, onlyFiles: true, fs });
  const [folder] = denied;
  if (folder !== undefined) throw unreadable(input, folder);
  return [...new Set(found)].sort();
}

const asFile = (entry: Dirent): Dirent =>
  Object.assign(Object.create(entry), { isFile: () => true });

/** Those that are files; counts the others, but folders in which there are such files. @throws InvalidOptionError */
function filesOf(input: string, found: readonly string[], skipped: Skipped): string[] {
  const folders: string[] = [];
  const files = found.filter((path) => {
    const stat = statOrCode(path);
    if (stat === 'EACCES') throw unreadable(input, dirname(resolve(path)));
    if (typeof stat === 'string') skipped.add('broken link');
    else if (stat.isDirectory()) folders.push(path);
    else if (!stat.isFile()) skipped.add('no file');
    return typeof stat !== 'string' && stat.isFile();
  });
  const read = new Set<string>();
  for (const file of files)
    for (let at = dirname(file); !read.has(at); at = dirname(at)) read.add(at);
  for (const folder of folders)
    if (!read.has(folder))
      skipped.add(lstatSync(folder).isSymbolicLink() ? 'link to a folder' : 'folder');
  return files;
}

/** What is at a path, also behind a link; or the code of the error. */
function statOrCode(path: string): BigIntStats | string {
  try {
    return statOf(path);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
}

const unreadable = (input: string, folder: string) =>
  new InvalidOptionError('--input', input, `paths that may be read (permission denied: ${folder})`);

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
