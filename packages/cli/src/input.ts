import { createReadStream, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { split } from '@piecework/producer';
import { InvalidOptionError } from '@piecework/protocol';
import { namedInput } from './named-input.js';

/**
 * Items of `--input` by `--split`. A folder is split into its files unless something else is said;
 * everything else into lines.
 * @throws InvalidOptionError when the two do not fit
 */
export function openInput(
  input: string | undefined,
  how: string | undefined,
): AsyncIterable<unknown> {
  if (input === undefined)
    throw new InvalidOptionError('--input', undefined, 'a file, a folder or -');
  return namedInput(input === '-' ? 'standard input' : input, itemsOf(input, how));
}

function itemsOf(input: string, how: string | undefined): AsyncIterable<unknown> {
  const folder = input !== '-' && statSync(input).isDirectory();
  const by = how ?? (folder ? 'files' : 'lines');
  if (folder !== (by === 'files')) {
    throw new InvalidOptionError(
      '--split',
      by,
      folder
        ? 'files, as the input is a folder'
        : 'lines, ndjson or chunk:N, as the input is no folder',
    );
  }
  if (folder) return split.files(input);
  const open = (): Readable => (input === '-' ? process.stdin : createReadStream(input));
  if (by === 'ndjson') return split.ndjson(open());
  if (by === 'lines') return split.lines(open());
  return split.chunks(open(), Number(by.slice('chunk:'.length)));
}
