import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline, type Readable } from 'node:stream';
import { checkOption, option, PayloadError } from '@piecework/protocol';
import split2 from 'split2';

/**
 * Splitters: how one big input becomes items. All stream; none holds the input.
 */

/** Every line is one item, a string without its line end. A line end at the very end adds nothing. */
export function lines(input: Readable): AsyncIterable<string> {
  const split = split2();
  // A failure of the input reaches the reader as a failure of the lines.
  pipeline(input, split, () => {});
  return split;
}

/**
 * Every line is one item, a JSON value; empty lines are skipped.
 * @throws PayloadError that names the line that is not JSON
 */
export async function* ndjson(input: Readable): AsyncIterable<unknown> {
  let number = 0;
  for await (const line of lines(input)) {
    number += 1;
    // Some editors put a byte order mark before the first line.
    const text = number === 1 ? line.replace(/^\ufeff/, '') : line;
    if (text.trim() === '') continue;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (cause) {
      throw new PayloadError(`line ${number} is not JSON: ${(cause as Error).message}`, cause);
    }
    yield value;
  }
}

/**
 * Every `size` lines are one item, an array of strings; the last may be shorter.
 * @throws InvalidOptionError when `size` is no whole number from 1 on
 */
export async function* chunks(input: Readable, size: number): AsyncIterable<string[]> {
  checkOption('size', size, option.integer(1, 1_000_000_000));
  let chunk: string[] = [];
  for await (const line of lines(input)) {
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
