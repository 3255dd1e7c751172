import { isUtf8 } from 'node:buffer';
import { type Duplex, pipeline, type Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { LineSplitter } from '@piecework/producer/items';
import { binaryOf } from './binary.js';

/** An item of the input, and its place. */
export interface GoodRecord {
  readonly item: unknown;
  /** Number of the line in which it begins, from 1; with `--split delimiter:X` its own number. */
  readonly number: number;
  /** Its place, where that is not `line` and its number. */
  readonly where?: string;
}

/** A part of the input that cannot be an item. */
export interface BadRecord {
  readonly number: number;
  readonly where?: string;
  /** Why, behind `line 7 `. */
  readonly wrong: string;
  /** Its bytes, each as a character, without its line end. */
  readonly bytes: string;
  /** Whether there are more bytes than these: the record is too long. */
  readonly more?: boolean;
  /** Number of its lines, if there are several. */
  readonly lines?: number;
  /** Present if the records behind it cannot be read without it. */
  readonly isHeader?: true;
}

export type InputRecord = GoodRecord | BadRecord;

export type Records = (bytes: Readable) => AsyncIterable<InputRecord>;

export const isBad = (record: object): record is BadRecord => 'wrong' in record;

/** How often a splitter is asked whether it has given away all that it has, in ms. */
const EMPTY_MS = 10;

export const NOT_UTF8 = 'is not UTF-8 text';
export const MORE = '--max-payload-bytes allows more';
/** The longest line of bytes that fits into a payload: base64 makes four characters of three bytes. */
const binaryBytes = (maxBytes: number) =>
  Math.max(1, Math.floor(((maxBytes - '{"$binary":""}'.length) * 3) / 4) - 2);

// biome-ignore lint/suspicious/noControlCharactersInRegex: all bytes of ASCII
const ASCII = /^[\x00-\x7f]*$/;

/** Decodes bytes, each a character. @returns undefined when they are not UTF-8, as decoding would alter them */
export function utf8Of(bytes: string): string | undefined {
  if (ASCII.test(bytes)) return bytes;
  const buffer = Buffer.from(bytes, 'latin1');
  // cure: input that is not UTF-8 is no item
  return isUtf8(buffer) ? buffer.toString() : undefined;
}

/**
 * The bytes. An error of them is thrown only when the splitter has given away all records before it: a stream that fails
 * drops those that it has.
 */
export async function* errorLast(
  from: AsyncIterable<unknown>,
  splitter: Duplex,
): AsyncGenerator<unknown> {
  try {
    yield* from;
  } catch (error) {
    const isEmpty = () => splitter.readableLength + splitter.writableLength === 0;
    while (!isEmpty() && !splitter.destroyed) await pause(EMPTY_MS, undefined, { ref: false });
    throw error;
  }
}

/** Each line, or the text between two delimiters, is an item. */
export function linesOf({
  delimiter = '\n',
  binary,
  maxPayloadBytes,
  advice: also = '',
}: {
  delimiter?: string | undefined;
  binary: boolean;
  maxPayloadBytes: number;
  /** What else to do about a line that is too long. */
  advice?: string;
}): Records {
  const maxBytes = binary ? binaryBytes(maxPayloadBytes) : maxPayloadBytes;
  const isLine = delimiter === '\n';
  const ends = isLine ? 'lines end in LF or CRLF; --split sets another delimiter; ' : '';
  const tooLong = `has more than ${maxBytes} bytes: ${ends}${also}${MORE}`;
  return async function* (from) {
    const split = new LineSplitter({ maxBytes, delimiter, binary: true, cuts: true });
    // An error of the bytes is also thrown to the reader of the lines.
    pipeline(errorLast(from, split), split, () => {});
    let number = 0;
    for await (const line of split as AsyncIterable<string>) {
      number += 1;
      const bytes = isLine && !binary && line.endsWith('\r') ? line.slice(0, -1) : line;
      if (bytes.length > maxBytes) {
        yield { wrong: tooLong, number, bytes: bytes.slice(0, maxBytes), more: true };
        continue;
      }
      const item = binary ? binaryOf(Buffer.from(bytes, 'latin1')) : utf8Of(bytes);
      yield item === undefined ? { wrong: NOT_UTF8, number, bytes } : { item, number };
    }
  };
}
