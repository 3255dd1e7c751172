import { readdir } from 'node:fs/promises';
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

/** Every file below `folder` is one item: its absolute path. Symbolic links are not followed. */
export async function* files(folder: string): AsyncIterable<string> {
  const here = resolve(folder);
  const entries = await readdir(here, { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(here, entry.name);
    if (entry.isDirectory()) yield* files(path);
    else if (entry.isFile()) yield path;
  }
}
