import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { PassThrough, pipeline, Readable, type Writable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { PayloadError } from '@piecework/protocol/contract';

/**
 * The bytes of one input: a file, a pipe or standard input. Inputs that are compressed by gzip or zstd are
 * decompressed. They are recognised by their first bytes, with which no UTF-8 text begins, and not by their name, so
 * that standard input needs no flag.
 */

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const UTF16 = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];
/** The number of first bytes by which formats are told apart. */
const HEAD_BYTES = 4;

export interface InputBytes {
  readonly stream: Readable;
  /** Closes the file, also while it is being read. */
  close(): void;
}

/**
 * @param path '-' is standard input
 * @throws PayloadError when it is of a format that cannot be read
 */
export async function openBytes(path: string, binary: boolean): Promise<InputBytes> {
  const raw: Readable = path === '-' ? process.stdin : createReadStream(path);
  const close = () => void raw.destroy();
  const chunks = raw[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const head: Buffer[] = [];
  let ended = false;
  while (!ended && Buffer.concat(head).length < HEAD_BYTES) {
    const { done, value } = await chunks.next();
    if (value) head.push(value);
    ended = done === true;
  }
  const first = Buffer.concat(head);
  const whole = Readable.from(
    (async function* () {
      if (first.length > 0) yield first;
      if (!ended) yield* { [Symbol.asyncIterator]: () => chunks };
    })(),
    { objectMode: false },
  );
  if (first.indexOf(GZIP) === 0) return { stream: gunzipped(whole), close };
  if (first.indexOf(ZSTD) === 0) return { stream: await unzstd(whole), close };
  if (!binary && UTF16.some((mark) => first.indexOf(mark) === 0)) {
    close();
    const advice = 'iconv -f UTF-16 -t UTF-8 converts it, --binary passes the bytes unchanged';
    throw new PayloadError(`this is UTF-16, or not text at all, but UTF-8 is expected: ${advice}`);
  }
  return { stream: whole, close };
}

function gunzipped(from: Readable): Readable {
  const out = new PassThrough();
  gunzipAll(from, out).then(
    () => out.end(),
    (error: Error) => out.destroy(error),
  );
  return out;
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
  const gunzip = createGunzip();
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
  const out = new PassThrough();
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(0, 1_000);
  });
  pipeline(from, child.stdin, (error) => {
    // The program has closed its input early; its exit code and message say why.
    if (error && error.code !== 'EPIPE') out.destroy(error);
  });
  child.stdout.pipe(out, { end: false });
  child.once('close', (code) => {
    if (code === 0) out.end();
    else out.destroy(new PayloadError(`broken zstd data (${reasonOf(said)})`));
  });
  out.once('close', () => child.kill('SIGKILL'));
  return out;
}

/** `premature end` of `/*stdin*\\ : Read error (39) : premature end`. */
const reasonOf = (said: string) => said.trim().split('\n').at(-1)?.split(' : ').at(-1)?.trim();
