import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, ReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { PassThrough, pipeline, Readable, type Writable } from 'node:stream';
import { createGunzip, type ZlibOptions } from 'node:zlib';
import { PayloadError } from '@piecework/protocol/contract';
import { quoted } from '../terminal/quoted.js';
import { FORMAT_BYTES, isOther, mayBeOther, refuseOther } from './other-formats.js';

/**
 * The bytes of one input: a file, a pipe or standard input. Inputs that are compressed by gzip or zstd are
 * decompressed. They are recognised by their first bytes, with which no UTF-8 text begins, and not by their name, so
 * that standard input needs no flag. A byte order mark at the start of a text is left out, and text that has one of
 * UTF-16 is converted to UTF-8.
 */

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const UTF8 = Buffer.from([0xef, 0xbb, 0xbf]);
const UTF16LE = Buffer.from([0xff, 0xfe]);
const UTF16BE = Buffer.from([0xfe, 0xff]);
/** Of these four bytes the first two are the mark of UTF-16. */
const UTF32LE = Buffer.from([0xff, 0xfe, 0, 0]);
/** The number of first bytes by which gzip, zstd and marks are told apart. */
const HEAD_BYTES = 4;

export interface InputBytes {
  readonly stream: Readable;
  /** The command that decompresses it, if it is compressed. */
  readonly unpack: string | undefined;
  /** Closes the file, also while it is being read. */
  close(): void;
}

/**
 * @param path '-' is standard input
 * @param isText whether a NUL in it is a mistake
 * @param command of piecework, for the advice in errors
 * @throws PayloadError when it is of a format that cannot be read
 */
export async function openBytes(
  path: string,
  binary: boolean,
  isText: boolean,
  command: string,
): Promise<InputBytes> {
  const size = path === '-' ? 0 : await sizeOf(path);
  const raw = path === '-' ? process.stdin : createReadStream(path);
  let decompressed: Readable | undefined;
  const close = () => {
    raw.destroy();
    decompressed?.destroy();
  };
  try {
    const outer = await peeked(raw instanceof ReadStream ? whole(raw, size) : raw);
    refuseOther(outer.head, path, command);
    const unpack = unpackOf(outer.head);
    decompressed = unpack && (await unpacked(unpack, outer.stream));
    const bytes = decompressed ? await peeked(decompressed) : outer;
    if (unpack !== undefined) refuseOther(bytes.head, path, command, unpack);
    if (isText) refuseUnmarked(bytes.head, path, command, unpack);
    return { stream: binary ? bytes.stream : textOf(bytes), unpack, close };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Refuses a file that is of a format that cannot be read, before it is its turn.
 * @throws PayloadError · errors of the file system
 */
export async function checkFormat(path: string, isText: boolean, command: string): Promise<void> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(FORMAT_BYTES);
    const { bytesRead } = await file.read(head, 0, FORMAT_BYTES, 0);
    refuseOther(head.subarray(0, bytesRead), path, command);
    // Of compressed data it is tested once it is decompressed.
    if (isText && unpackOf(head) === undefined)
      refuseUnmarked(head.subarray(0, bytesRead), path, command);
  } finally {
    await file.close();
  }
}

const hasMark = (head: Buffer) => [UTF8, UTF16LE, UTF16BE].some((mark) => head.indexOf(mark) === 0);

/**
 * Whether an input that begins with these bytes is refused, or is not read as they are.
 * @param binary as of `openBytes`
 */
export function isMisread(head: Buffer, binary: boolean): boolean {
  if (unpackOf(head) !== undefined || isOther(head)) return true;
  return !binary && (hasMark(head) || unmarkedUtf16(head) !== undefined);
}

/** The command that reads an input of this encoding. */
export function convertedBy(
  encoding: string,
  path: string,
  command: string,
  unpack: string | undefined,
): string {
  const file = path === '-' ? '' : ` ${quoted(path)}`;
  const iconv = `iconv -f ${encoding} -t UTF-8`;
  const convert = unpack === undefined ? `${iconv}${file}` : `${unpack}${file} | ${iconv}`;
  return `${convert} | piecework ${command} --input - …`;
}

/** @throws PayloadError when it is UTF-16 without a mark: its lines would have NULs between their letters */
function refuseUnmarked(head: Buffer, path: string, command: string, unpack?: string): void {
  const encoding = unmarkedUtf16(head);
  if (encoding === undefined) return;
  const pipe = convertedBy(encoding, path, command, unpack);
  throw new PayloadError(`this is UTF-16 without a byte order mark: ${pipe}`);
}

/**
 * Of UTF-16, by its NULs: each line end has one at its side. Where there is no line end, NULs are at one side of
 * characters only, and so at most of them.
 */
function unmarkedUtf16(bytes: Buffer): 'UTF-16LE' | 'UTF-16BE' | undefined {
  if (hasMark(bytes)) return undefined;
  // Who writes a file, checks it and reads it has other first bytes; all of them have these, and so find the same.
  const head = bytes.subarray(0, FORMAT_BYTES);
  const places = (byte: number) => [...head.keys()].filter((i) => head[i] === byte);
  const [zeros, ends] = [places(0), places(0x0a)];
  // The parity of the places of NULs, and where they are from the other half of a character.
  for (const [encoding, parity, side] of [
    ['UTF-16LE', 1, 1],
    ['UTF-16BE', 0, -1],
  ] as const) {
    const beside = (i: number) => i % 2 !== parity && (head[i + side] ?? 0) === 0;
    const only = zeros.every((i) => i % 2 === parity) && zeros.length * 4 >= head.length;
    if (zeros.length > 0 && (ends.length > 0 ? ends.every(beside) : only)) return encoding;
  }
  return undefined;
}

/** The command that decompresses bytes that begin so; undefined: they are not compressed. */
function unpackOf(head: Buffer): 'gunzip -c' | 'zstd -dc' | undefined {
  if (head.indexOf(GZIP) === 0) return 'gunzip -c';
  return head.indexOf(ZSTD) === 0 ? 'zstd -dc' : undefined;
}

const unpacked = (unpack: 'gunzip -c' | 'zstd -dc', from: Readable) =>
  unpack === 'gunzip -c' ? gunzipped(from) : unzstd(from);

/** How many bytes a regular file has; 0: it is none, or nobody knows. */
async function sizeOf(path: string): Promise<number> {
  const found = await stat(path);
  return found.isFile() ? found.size : 0;
}

/** The bytes of a file that had `size` of them when it was opened. @throws PayloadError where it has become shorter */
function whole(file: ReadStream, size: number): Readable {
  const chunks = async function* () {
    yield* file;
    const left = file.bytesRead;
    // cure: a file that becomes shorter while it is read is not taken for a whole one
    if (left < size)
      throw new PayloadError(
        `the file became shorter while it was read, from ${size} to ${left} bytes: what was cut off is not read. Run it on a file that nobody writes`,
      );
  };
  return streamOf(chunks());
}

interface Peeked {
  readonly head: Buffer;
  readonly stream: Readable;
}

/** The first bytes of a stream, and a stream of all of its bytes. */
async function peeked(from: Readable): Promise<Peeked> {
  const chunks = from[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let head = Buffer.alloc(0);
  let ended = false;
  while (!ended && (head.length < HEAD_BYTES || mayBeOther(head))) {
    const { done, value } = await chunks.next();
    if (value) head = Buffer.concat([head, value]);
    ended = done === true;
  }
  const all = async function* () {
    if (head.length > 0) yield head;
    if (!ended) yield* { [Symbol.asyncIterator]: () => chunks };
  };
  return { head, stream: streamOf(all()) };
}

/** Text without its byte order mark, in UTF-8. @throws PayloadError */
function textOf({ head, stream }: Peeked): Readable {
  if (head.indexOf(UTF32LE) === 0)
    throw new PayloadError('this is UTF-32: iconv -f UTF-32 -t UTF-8 converts it');
  const encoding =
    head.indexOf(UTF16LE) === 0 ? 'utf-16le' : head.indexOf(UTF16BE) === 0 ? 'utf-16be' : undefined;
  if (encoding) return streamOf(decoded(stream, encoding));
  return head.indexOf(UTF8) === 0 ? streamOf(behind(stream, UTF8.length)) : stream;
}

async function* behind(stream: Readable, bytes: number): AsyncGenerator<Buffer> {
  let left = bytes;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const rest = chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
    if (rest.length > 0) yield rest;
  }
}

/** @throws PayloadError when a character is broken, as decoding would alter it */
async function* decoded(stream: Readable, encoding: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  const decode = (chunk?: Buffer) => {
    try {
      return Buffer.from(decoder.decode(chunk, { stream: chunk !== undefined }));
    } catch (cause) {
      const advice = '--binary passes the bytes unchanged';
      throw new PayloadError(`it begins as UTF-16, but is not UTF-16 text: ${advice}`, cause);
    }
  };
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const text = decode(chunk);
    if (text.length > 0) yield text;
  }
  const last = decode();
  if (last.length > 0) yield last;
}

/** It reads on only when all before is taken: a stream that fails drops what it has. */
const streamOf = (bytes: AsyncIterable<Uint8Array>) =>
  Readable.from(bytes, { objectMode: false, highWaterMark: 1 });

/** The bytes that are written, and then the error, if there is one: a stream that is destroyed loses what it has. */
class Decompressed {
  readonly out = new PassThrough();
  readonly stream: Readable;
  #error: Error | undefined;

  constructor() {
    const { out } = this;
    const all = async function* (error: () => Error | undefined) {
      yield* out;
      const wrong = error();
      if (wrong) throw wrong;
    };
    this.stream = streamOf(all(() => this.#error));
    this.stream.once('close', () => out.destroy());
  }

  end(error?: Error): void {
    this.#error ??= error;
    this.out.end();
  }
}

function gunzipped(from: Readable): Readable {
  const decompressed = new Decompressed();
  gunzipAll(from, decompressed.out).then(
    () => decompressed.end(),
    (error: Error) => decompressed.end(error),
  );
  return decompressed.stream;
}

/**
 * Node's decoder reads several members, but ends at the first zero byte behind one. Zeros are padding, as on tapes and
 * in files of whole blocks: members behind them are decompressed as well.
 */
async function gunzipAll(from: Readable, out: Writable): Promise<void> {
  const chunks = from[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const next = async () => (await chunks.next()).value as Buffer | undefined;
  let chunk = await next();
  while (chunk) {
    chunk = await gunzipMembers(chunk, next, out);
    while (chunk && isPadding(chunk)) chunk = await next();
    chunk = chunk?.subarray(chunk.findIndex((byte) => byte !== 0));
  }
}

const isPadding = (bytes: Buffer) => bytes.every((byte) => byte === 0);

/** Decompresses members up to a padding. @returns the bytes that were read behind them */
async function gunzipMembers(
  first: Buffer,
  next: () => Promise<Buffer | undefined>,
  out: Writable,
): Promise<Buffer | undefined> {
  // It decompresses more only when all before is read, so that an error finds nothing that it would lose.
  const gunzip = createGunzip({ readableHighWaterMark: 1 } as ZlibOptions);
  const ended = new Promise<'ended'>((resolve, reject) => {
    gunzip.once('end', () => resolve('ended')).once('error', reject);
  });
  ended.catch(() => {});
  const stop = () => void gunzip.destroy();
  out.once('close', stop);
  gunzip.pipe(out, { end: false });
  const write = (bytes: Buffer) =>
    new Promise<void>((resolve, reject) => {
      gunzip.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  let before = 0;
  for (let chunk: Buffer | undefined = first; chunk; chunk = await next()) {
    if ((await Promise.race([write(chunk), ended])) === 'ended') {
      out.off('close', stop);
      return chunk.subarray(gunzip.bytesWritten - before);
    }
    before += chunk.length;
  }
  gunzip.end();
  await ended;
  out.off('close', stop);
  return undefined;
}

/**
 * Decompresses by the program `zstd`: Node 20 has no decoder, and the decoders in JavaScript do not verify checksums,
 * so that a broken file would be read as other bytes (docs/decisions/0038).
 */
async function unzstd(from: Readable): Promise<Readable> {
  // In a process group of its own, which Ctrl-C does not reach: bytes that it has read are used.
  const child = spawn('zstd', ['-dcq', '--no-progress'], { detached: true });
  try {
    await once(child, 'spawn');
  } catch {
    from.destroy();
    const advice = 'install it, or decompress the file first';
    throw new PayloadError(`compressed by zstd, but there is no program zstd on PATH: ${advice}`);
  }
  const decompressed = new Decompressed();
  const { out } = decompressed;
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(0, 1_000);
  });
  pipeline(from, child.stdin, (error) => {
    // The program has closed its input early; its exit code and message say why.
    if (error && error.code !== 'EPIPE') decompressed.end(error);
  });
  child.stdout.pipe(out, { end: false });
  child.once('close', (code) => {
    decompressed.end(
      code === 0 ? undefined : new PayloadError(`broken zstd data (${reasonOf(said)})`),
    );
  });
  out.once('close', () => child.kill('SIGKILL'));
  return decompressed.stream;
}

/** `premature end` of `/*stdin*\\ : Read error (39) : premature end`. */
const reasonOf = (said: string) => said.trim().split('\n').at(-1)?.split(' : ').at(-1)?.trim();
