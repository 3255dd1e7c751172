import { isUtf8 } from 'node:buffer';
import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline, type Readable } from 'node:stream';
import {
  checkOption,
  checkOptions,
  LARGEST_VALUE_BYTES,
  MAX_PAYLOAD_BYTES,
  type OptionTable,
  option,
  PayloadError,
} from '@piecework/protocol/contract';
import { LineSplitter } from './line-splitter.js';
import { Utf8Check } from './utf8-check.js';

/**
 * Splitters turn one big input into items. They stream: none keeps the input in memory.
 */

export interface LinesOptions {
  /**
   * Longest line without its end, in bytes, up to 256 MiB. A longer one is a PayloadError as soon as that many bytes
   * were read. For longer items raise `maxPayloadBytes` of the request, too. @default 1048576
   */
  readonly maxLineBytes?: number | undefined;
}

const linesOptions: OptionTable = {
  maxLineBytes: option.integer(1, LARGEST_VALUE_BYTES, MAX_PAYLOAD_BYTES),
};

/**
 * Every line is one item, a string without its line end (LF or CRLF). A line end at the very end adds
 * nothing; a byte order mark at the very start is left out.
 * @throws InvalidOptionError · while it is read: PayloadError that names a line that is too long, or is not UTF-8
 */
export function lines(input: Readable, options: LinesOptions = {}): AsyncIterable<string> {
  const { maxLineBytes } = checkOptions<Required<LinesOptions>>(linesOptions, options);
  const advice = ': end lines with LF or CRLF, or raise maxLineBytes and maxPayloadBytes';
  const split = new LineSplitter({ maxBytes: maxLineBytes, advice });
  // An error of the input destroys `split`, whose reader throws it.
  pipeline(input, new Utf8Check(), split, () => {});
  return split;
}

/**
 * Every line is one item, a JSON value; empty lines are skipped.
 * @throws PayloadError that names the line that is not JSON, not UTF-8, or too long
 */
export async function* ndjson(input: Readable, options: LinesOptions = {}): AsyncIterable<unknown> {
  let number = 0;
  for await (const line of lines(input, options)) {
    number += 1;
    if (line.trim() === '') continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      throw new PayloadError(`line ${number} is not JSON: ${(cause as Error).message}`, cause);
    }
    yield value;
  }
}

/**
 * Every `size` lines are one item, an array of strings; the last may be shorter.
 * @throws InvalidOptionError when `size` is no whole number from 1 on · PayloadError that names a line that
 *   is too long, or is not UTF-8
 */
export async function* chunks(
  input: Readable,
  size: number,
  options: LinesOptions = {},
): AsyncIterable<string[]> {
  checkOption('size', size, option.integer(1, 1_000_000_000));
  let chunk: string[] = [];
  for await (const line of lines(input, options)) {
    chunk.push(line);
    if (chunk.length === size) {
      yield chunk;
      chunk = [];
    }
  }
  if (chunk.length > 0) yield chunk;
}

/** Why `files` skips an entry of a folder. `no file`: a socket, a pipe or a device. */
export type SkippedFile = 'hidden' | 'link to a folder' | 'broken link' | 'no file';

export interface FilesOptions {
  /** Is called with the absolute path of each entry that is skipped. */
  readonly onSkipped?: ((path: string, why: SkippedFile) => void) | undefined;
}

/**
 * Every file below `folder` is one item: its absolute path, folder by folder in the order of the names. A symbolic link
 * to a file counts as a file, by the path of the link. As the patterns of a shell do, it skips files and folders whose
 * names begin with a dot. It also skips links to folders, broken links, and what is neither a file nor a folder.
 * @throws while it is read: PayloadError that names a path that is not UTF-8, which no JSON can contain · errors of the
 *   file system
 */
export async function* files(folder: string, options: FilesOptions = {}): AsyncIterable<string> {
  const here = resolve(folder);
  const entries = await readdir(here, { withFileTypes: true, encoding: 'buffer' });
  const named = entries.map((entry) => ({ entry, name: entry.name.toString() }));
  named.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { entry, name } of named) {
    const path = join(here, name);
    const isHidden = name.startsWith('.');
    if (!isHidden && !isUtf8(entry.name)) throw notUtf8(here, entry.name);
    const skip = isHidden ? 'hidden' : await skipOf(entry, path);
    if (skip !== undefined) options.onSkipped?.(path, skip);
    else if (entry.isDirectory()) yield* files(path, options);
    else yield path;
  }
}

async function skipOf(entry: Dirent<Buffer>, path: string): Promise<SkippedFile | undefined> {
  if (entry.isFile() || entry.isDirectory()) return undefined;
  if (!entry.isSymbolicLink()) return 'no file';
  const target = await stat(path).catch(() => undefined);
  if (!target) return 'broken link';
  if (target.isDirectory()) return 'link to a folder';
  return target.isFile() ? undefined : 'no file';
}

/** The name as bash reads it: `$'g\\xfc.txt'`. */
function notUtf8(folder: string, name: Buffer): PayloadError {
  const escaped = name
    .toString('latin1')
    .replace(/[^ -~]|['\\]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return new PayloadError(
    `a name in ${folder} is not UTF-8, so no payload can contain it: rename $'${escaped}'`,
  );
}
