import { constants, existsSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { ResultItem } from '@piecework/notifier';
import { InvalidOptionError, PieceworkError } from '@piecework/protocol';
import { say } from './progress-bar.js';

/** Lines are gathered up to this many characters before they are written, */
const BATCH = 65_536;
/** or for so long, in ms. */
const SOON_MS = 100;

/** Why a file cannot be opened or written, in words. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  ENOTDIR: 'its folder is no folder',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be too large',
  EIO: 'the disk failed',
};

const reasonOf = ({ code = '', message }: NodeJS.ErrnoException) => REASONS[code] ?? message;

/** A file that was open could not be written on. It ends with a whole line where files can be cut. */
export class OutputError extends PieceworkError {
  override readonly name = 'OutputError';
  /** Lines that are in it. */
  readonly written: number;
  readonly reason: string;

  constructor(output: string, written: number, cause: NodeJS.ErrnoException) {
    const reason = reasonOf(cause);
    super(`${output}: ${reason}`, { code: 'OUTPUT' });
    this.written = written;
    this.reason = reason;
  }
}

/**
 * A file that takes lines, or standard output. It is opened before there is anything to write, so that a
 * wrong path is refused while nothing is lost by it; what was in it stays until `begin`.
 */
export class Output {
  readonly name: string;
  readonly #file: FileHandle | undefined;
  /** Whether the file was not there before. */
  readonly #isNew: boolean;
  #begun = false;
  /** Bytes and lines that are written. */
  #size = 0;
  #lines = 0;
  #batch = '';
  #soon: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #failed = false;
  #abandoned = false;

  private constructor(name: string, file?: FileHandle, isNew = false) {
    this.name = name;
    this.#file = file;
    this.#isNew = isNew;
  }

  /**
   * @param path '-' is standard output
   * @throws InvalidOptionError of `flag` when it cannot be written
   */
  static async open(flag: string, path: string): Promise<Output> {
    if (path === '-') return new Output('standard output');
    return Output.#open(flag, path, 0, 0o666);
  }

  /** A new file that only this user may read. @throws InvalidOptionError when it cannot be made */
  static create(path: string): Promise<Output> {
    return Output.#open('file', path, constants.O_EXCL, 0o600);
  }

  static async #open(flag: string, path: string, flags: number, mode: number): Promise<Output> {
    try {
      const isNew = !existsSync(path);
      const file = await open(path, constants.O_WRONLY | constants.O_CREAT | flags, mode);
      return new Output(path, file, isNew);
    } catch (error) {
      const why = reasonOf(error as NodeJS.ErrnoException);
      throw new InvalidOptionError(flag, path, `a file that can be written (${why})`);
    }
  }

  /** Empties the file. */
  async begin(): Promise<void> {
    if (this.#begun) return;
    this.#begun = true;
    // Pipes and devices have nothing that could be cut.
    if ((await this.#file?.stat())?.isFile()) await this.#file?.truncate(0);
  }

  /** Adds a line, no faster than they are taken. @throws OutputError · EPIPE as it comes */
  line(text: string): Promise<void> | undefined {
    this.#batch += `${text}\n`;
    if (this.#failed || this.#batch.length >= BATCH) return this.flush();
    this.#soon ??= setTimeout(() => void this.flush().catch(() => {}), SOON_MS);
    return undefined;
  }

  /** Writes what was gathered. Once it has failed, it fails again. */
  flush(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    const text = this.#batch;
    this.#batch = '';
    this.#writing = this.#writing.then(() => this.#put(text));
    this.#writing.catch(() => {
      this.#failed = true;
    });
    return this.#writing;
  }

  /** Writes the rest, and closes a file. @throws OutputError · EPIPE as it comes */
  async close(): Promise<void> {
    if (this.#abandoned) return;
    try {
      await this.begin();
      await this.flush();
    } finally {
      await this.#file?.close().catch((error) => this.#fail(error));
    }
  }

  /** Leaves everything as it was, unless something was begun. */
  async abandon(): Promise<void> {
    if (this.#begun || this.#abandoned || this.#batch !== '') return;
    this.#abandoned = true;
    await this.#file?.close();
    if (this.#isNew) await rm(this.name, { force: true });
  }

  async #put(text: string): Promise<void> {
    if (text === '') return;
    await this.begin();
    if (this.#file) await this.#write(this.#file, Buffer.from(text));
    else await write(process.stdout, text).catch((error) => this.#fail(error));
  }

  async #write(file: FileHandle, bytes: Buffer): Promise<void> {
    let at = 0;
    try {
      while (at < bytes.length) at += (await file.write(bytes, at)).bytesWritten;
    } catch (error) {
      // Whole lines only.
      this.#note(bytes.subarray(0, bytes.subarray(0, at).lastIndexOf('\n') + 1));
      await file.truncate(this.#size).catch(() => {});
      this.#fail(error as NodeJS.ErrnoException);
    }
    this.#note(bytes);
  }

  #note(written: Buffer): void {
    this.#size += written.length;
    for (let at = written.indexOf('\n'); at !== -1; at = written.indexOf('\n', at + 1))
      this.#lines += 1;
  }

  #fail(error: NodeJS.ErrnoException): never {
    // Whoever reads may have seen enough.
    if (error.code === 'EPIPE') throw error;
    throw new OutputError(this.name, this.#lines, error);
  }
}

function write(stream: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** One result as a line of `--out`: `{"index":…,"status":…,"value"|"error":…}`. */
export function resultLine(item: ResultItem<unknown>): string {
  const { index, status } = item;
  const line =
    item.status === 'succeeded'
      ? { index, status, value: item.value === undefined ? null : item.value }
      : { index, status, error: item.error };
  return JSON.stringify(line);
}

/**
 * Writes results as NDJSON, no faster than the file or pipe takes them, and closes it.
 * @throws OutputError · EPIPE as it comes · as what reads the results
 */
export async function writeResults(
  results: AsyncIterable<ResultItem<unknown>>,
  output: Output,
): Promise<void> {
  try {
    for await (const item of results) await output.line(resultLine(item));
  } catch (error) {
    await output.abandon();
    throw error;
  } finally {
    await output.close();
  }
}

/** The same while a request runs: answers why results are missing. They stay in Redis, and the request goes on. */
export async function writeResultsLive(
  results: AsyncIterable<ResultItem<unknown>>,
  output: Output,
  json: boolean,
): Promise<OutputError | undefined> {
  try {
    await writeResults(results, output);
    return undefined;
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    if (!json) say(`${error.message}; the results stay in Redis`);
    return error;
  }
}
