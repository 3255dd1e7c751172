import { constants, existsSync, write } from 'node:fs';
import { type FileHandle, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { ResultItem } from '@piecework/notifier';
import { InvalidOptionError, PieceworkError, shownText } from '@piecework/protocol/contract';
import { statOfStream } from '../terminal/file-stat.js';
import { reasonOf } from '../terminal/system-reasons.js';
import { openOurs } from './open-ours.js';
import { type ResultWriter, resultFormats } from './result-format.js';

const LINE_END = Buffer.from('\n');
/** Lines are written in batches of at least this many characters, */
const BATCH = 65_536;
/** or after this time, in ms. */
const SOON_MS = 100;

const STDOUT = 1;
const writeTo = promisify(write);

/** Whether standard output is a file or a device, and not a stream. */
const isFileStream = () => {
  const stat = process.stdout.isTTY ? undefined : statOfStream(STDOUT);
  return stat !== undefined && !stat.isFIFO() && !stat.isSocket();
};

/** An open file could not be written any further. It ends with a whole line, where files can be truncated. */
export class OutputError extends PieceworkError {
  override readonly name = 'OutputError';
  /** Number of lines in the file. */
  readonly written: number;
  readonly reason: string;
  /** Whether its reader wants nothing more, as `head` after its last line. */
  readonly isClosed: boolean;

  constructor(output: string, written: number, cause: NodeJS.ErrnoException) {
    const reason = reasonOf(cause);
    super(`${output}: ${reason}`, { code: 'OUTPUT' });
    this.written = written;
    this.reason = reason;
    this.isClosed = cause.code === 'EPIPE';
  }
}

/**
 * Lines that are written into a file or to standard output. The file is opened before there is anything to write, so
 * that a wrong path is refused before any work is done. Its old content stays until `begin`.
 */
export class Output {
  readonly name: string;
  readonly #file: FileHandle | undefined;
  /** Whether `open` has created the file. */
  readonly #isNew: boolean;
  #begun: Promise<void> | undefined;
  /** Whether it is a regular file, which can be read again and truncated. */
  #regular = false;
  /** Whether everything written so far was in the file already. */
  #matches = false;
  /** Bytes and lines that are written. */
  #size = 0;
  #lines = 0;
  #batch: (string | Buffer)[] = [];
  #batchSize = 0;
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
   * @param again whether its old content may be read, to continue it
   * @throws InvalidOptionError of `flag` when it cannot be written
   */
  static async open(flag: string, path: string, again = false): Promise<Output> {
    if (path === '-') return new Output('standard output');
    // Only files are opened for reading too: we would be a reader of our own pipe.
    const isFile = again && (await stat(path).catch(() => undefined))?.isFile() !== false;
    return Output.#open(flag, path, isFile ? constants.O_RDWR : constants.O_WRONLY, 0o666);
  }

  /** Creates a file that only this user may read. @throws InvalidOptionError when it cannot be created */
  static create(path: string): Promise<Output> {
    return Output.#open('file', path, constants.O_WRONLY | constants.O_EXCL, 0o600);
  }

  static async #open(flag: string, path: string, flags: number, mode: number): Promise<Output> {
    try {
      const isNew = !existsSync(path);
      const file = await openOurs(path, constants.O_CREAT | flags, mode);
      return new Output(path, file, isNew);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const isThere = code === 'ENOENT' && existsSync(dirname(path));
      const why = isThere
        ? 'its folder takes no new files'
        : reasonOf(error as NodeJS.ErrnoException);
      throw new InvalidOptionError(flag, path, `a file that can be written (${why})`);
    }
  }

  /** Whether it is a file, and not standard output. */
  get isFile(): boolean {
    return this.#file !== undefined;
  }

  /** Size of the file, in bytes. */
  async size(): Promise<number> {
    return (await this.#file?.stat())?.size ?? 0;
  }

  /**
   * Empties the file. `again`: keeps the old content as far as it is the same as what is written, for example up to a
   * line that was cut off.
   */
  begin(again = false): Promise<void> {
    this.#begun ??= this.#begin(again);
    // cure: a file is emptied before its first line is written
    return this.#begun;
  }

  async #begin(again: boolean): Promise<void> {
    // Pipes and devices cannot be truncated.
    this.#regular = (await this.#file?.stat())?.isFile() ?? false;
    this.#matches = again && this.#regular;
    if (this.#regular && !again) await this.#file?.truncate(0);
  }

  /** Everything was written: removes old content behind it. */
  async end(): Promise<void> {
    await this.begin();
    await this.flush();
    if (this.#matches) await this.#file?.truncate(this.#size);
  }

  /**
   * Adds a line, or several in one text, no faster than the output takes them. Results of others do not command a
   * terminal; NDJSON stays the same data there.
   * @param shown characters that a terminal gets as they are
   * @throws OutputError
   */
  line(given: string | Buffer, shown = '\t'): Promise<void> | undefined {
    const isShown = !this.#file && process.stdout.isTTY;
    const text = isShown ? shownText(given.toString(), shown) : given;
    return this.text(typeof text === 'string' ? `${text}\n` : Buffer.concat([text, LINE_END]));
  }

  /** Adds text that need not be a line. @throws as `line` */
  text(text: string | Buffer): Promise<void> | undefined {
    this.#batch.push(text);
    this.#batchSize += text.length;
    if (this.#failed || this.#batchSize >= BATCH) return this.flush();
    this.#soon ??= setTimeout(() => void this.flush().catch(() => {}), SOON_MS);
    return undefined;
  }

  /** Adds a line that is not counted. */
  head(text: string): Promise<void> | undefined {
    this.#lines -= 1;
    return this.line(text);
  }

  /** Writes the lines that were added. Once this has failed, it fails again. */
  flush(): Promise<void> {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    const lines = this.#batch;
    this.#batch = [];
    this.#batchSize = 0;
    this.#writing = this.#writing.then(() => this.#put(lines));
    this.#writing.catch(() => {
      this.#failed = true;
    });
    return this.#writing;
  }

  /** Writes the rest, and closes the file. @throws OutputError */
  async close(): Promise<void> {
    if (this.#abandoned) return;
    try {
      await this.begin();
      await this.flush();
    } finally {
      await this.#file?.close().catch((error) => this.#fail(error));
    }
  }

  /** Leaves the file as it was, unless something was written. */
  async abandon(): Promise<void> {
    if (this.#begun || this.#abandoned || this.#batch.length > 0) return;
    this.#abandoned = true;
    await this.#file?.close();
    if (this.#isNew) await rm(this.name, { force: true });
  }

  async #put(lines: readonly (string | Buffer)[]): Promise<void> {
    if (lines.length === 0) return;
    await this.begin();
    const bytes = joined(lines);
    const file = this.#file;
    let at = 0;
    try {
      if (file && this.#matches && (await this.#continuesWith(file, bytes)))
        return this.#count(lines, bytes.length);
      if (this.#matches) await file?.truncate(this.#size);
      this.#matches = false;
      // It may take a part only.
      while (at < bytes.length) at += await this.#write(bytes.subarray(at), this.#size + at);
    } catch (error) {
      // Keep only whole lines.
      this.#count(lines, at);
      await file?.truncate(this.#size).catch(() => {});
      this.#fail(error as NodeJS.ErrnoException);
    }
    this.#count(lines, at);
  }

  /** @returns how many bytes were written */
  async #write(bytes: Buffer, at: number): Promise<number> {
    const place = this.#regular ? at : null;
    if (this.#file) return (await this.#file.write(bytes, 0, null, place)).bytesWritten;
    // The stream of Node loses what a file does not take.
    if (isFileStream()) return (await writeTo(STDOUT, bytes, 0, bytes.length, null)).bytesWritten;
    await new Promise<void>((resolve, reject) => {
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
    return bytes.length;
  }

  /** Whether the file continues with these bytes. */
  async #continuesWith(file: FileHandle, bytes: Buffer): Promise<boolean> {
    const found = Buffer.alloc(bytes.length);
    let at = 0;
    while (at < found.length) {
      const { bytesRead } = await file.read(found, at, found.length - at, this.#size + at);
      if (bytesRead === 0) return false;
      at += bytesRead;
    }
    return found.equals(bytes);
  }

  /** Counts the `lines` that are within the first `bytes`. */
  #count(lines: readonly (string | Buffer)[], bytes: number): void {
    let rest = bytes;
    for (const line of lines) {
      const size = Buffer.byteLength(line);
      if (size > rest) return;
      rest -= size;
      this.#size += size;
      this.#lines += 1;
    }
  }

  #fail(error: NodeJS.ErrnoException): never {
    throw new OutputError(this.name, Math.max(0, this.#lines), error);
  }
}

function joined(lines: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(lines.map((line) => (typeof line === 'string' ? Buffer.from(line) : line)));
}

/**
 * Writes results, no faster than the output takes them, and closes it.
 * @throws OutputError · errors of `results`
 */
export async function writeResults(
  results: AsyncIterable<ResultItem<unknown>>,
  output: Output,
  writer: ResultWriter = resultFormats.ndjson,
): Promise<void> {
  try {
    const head = async () => {
      if (writer.head !== undefined) await output.head(writer.head);
    };
    let begun = false;
    for await (const item of results) {
      if (!begun) await head();
      begun = true;
      const line = writer.line(item);
      if (line !== undefined) await output.line(line, writer.shown);
    }
    if (!begun) await head();
    await output.end();
  } catch (error) {
    await output.abandon();
    throw error;
  } finally {
    await output.close();
  }
}

/**
 * The same while a request runs. An output that fails does not stop the request.
 * @param onCut is called at once @returns why results are missing
 */
export async function writeResultsLive(
  results: AsyncIterable<ResultItem<unknown>>,
  output: Output,
  onCut: (error: OutputError) => void,
  writer?: ResultWriter,
): Promise<OutputError | undefined> {
  try {
    await writeResults(results, output, writer);
    return undefined;
  } catch (error) {
    if (!(error instanceof OutputError)) throw error;
    onCut(error);
    return error;
  }
}
