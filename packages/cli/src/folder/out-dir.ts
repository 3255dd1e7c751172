import { constants, existsSync } from 'node:fs';
import { access, mkdir, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Failure, type FailureKind, FailureKinds } from '@piecework/notifier';
import { InvalidOptionError, type JsonText } from '@piecework/protocol/contract';
import type { RequestHandle } from 'piecework';
import type { Input } from '../input/input.js';
import type { InputValues } from '../input/input-values.js';
import { failureLine } from '../output/failure-kinds.js';
import { Output, OutputError } from '../output/output.js';
import { resultFormats } from '../output/result-format.js';
import { reasonOf } from '../terminal/system-reasons.js';
import { itemFormatOf } from './encoding.js';
import { ItemFiles, type ListedFile, PART } from './item-files.js';
import { Spool } from './spool.js';

/**
 * `--out-dir DIR`: what succeeded, failed and is pending, as files, and a manifest that lists them
 * (docs/decisions/0080). Nothing is listed before all of it is written: the manifest comes last.
 */

const MANIFEST = 'manifest.json';
const ITEMS = `items${PART}`;
/** The files of an earlier run of the same request. */
const OURS = /^(?:(?:succeeded|errors)\.ndjson|(?:failed|pending)(?:-\d+)?\.[a-z]+)(?:\.part)?$/;

/** What is known of a run before it begins. */
export interface About {
  readonly id: string;
  readonly queue: string;
  readonly input: readonly string[];
  readonly split: string;
  readonly options: Record<string, unknown>;
}

/** How far the request of a run is. */
export interface Standing {
  /** How it ended; `stopped`: the same command continues it. */
  readonly status: 'succeeded' | 'failed' | 'cancelled' | 'stopped';
  readonly endReason: string | undefined;
  readonly generation: number;
  readonly counts: object;
  readonly badRecords: number | undefined;
}

/** What was written. */
export interface Written {
  readonly kinds: readonly FailureKind[];
  readonly failed: readonly ListedFile[];
  readonly pending: readonly ListedFile[];
  readonly counts: {
    readonly succeeded: number;
    readonly failed: number;
    readonly pending: number;
  };
  /** Whether there was more input that was not read. */
  readonly isCut: boolean;
}

export class OutDir {
  readonly name: string;
  readonly isFile = true;
  /** Whether it has files of the request that this command may continue. */
  readonly #isOld: boolean;
  readonly #isNew: boolean;
  readonly #startedAt = new Date();
  #about: About | undefined;
  #spool: Spool | undefined;

  private constructor(name: string, isOld: boolean, isNew: boolean) {
    this.name = name;
    this.#isOld = isOld;
    this.#isNew = isNew;
  }

  /**
   * Creates the folder, and writes nothing into it.
   * @param id of the request that may be continued, if it may
   * @throws InvalidOptionError when it cannot be written, or has other files
   */
  static async open(path: string, id: string | undefined): Promise<OutDir> {
    try {
      const isNew = !existsSync(path);
      if (isNew) await mkdir(path);
      const found = await readdir(path);
      await access(path, constants.W_OK | constants.X_OK);
      const isOld = found.length > 0;
      if (isOld) await expectOurs(path, found, id);
      return new OutDir(path, isOld, isNew);
    } catch (error) {
      if (error instanceof InvalidOptionError) throw error;
      const cause = error as NodeJS.ErrnoException;
      const why = cause.code === 'ENOTDIR' ? 'it is a file' : reasonOf(cause);
      throw new InvalidOptionError('--out-dir', path, `a folder that can be written (${why})`);
    }
  }

  /** More than 0 if it has files of this request. */
  size(): Promise<number> {
    return Promise.resolve(this.#isOld ? 1 : 0);
  }

  /** Marks the folder as that of a request, and removes the files of its earlier runs. @throws InvalidOptionError */
  async begin(about: About): Promise<void> {
    // Another run may have begun in it since it was opened.
    if (!this.#isOld && existsSync(join(this.name, MANIFEST)))
      await expectOurs(this.name, [MANIFEST], undefined);
    this.#about = about;
    await this.#manifest({ status: 'running' });
    // cure: files of an earlier stop go before the run continues
    for (const name of await readdir(this.name))
      if (OURS.test(name)) await rm(join(this.name, name), { force: true });
    const items = join(this.name, ITEMS);
    await rm(items, { force: true });
    this.#spool = await Spool.open(items);
  }

  /** The items of the input, which are noted on their way to the request. */
  noting(input: Input): AsyncIterable<unknown> {
    return this.#spool?.noting(input) ?? input;
  }

  /** Writes the files, and then the manifest. @throws OutputError · as `results` */
  async write(
    handle: RequestHandle,
    input: Input,
    values: InputValues,
    standing: Standing,
  ): Promise<Written> {
    const spool = this.#spool as Spool;
    try {
      await spool.rest();
      const format = itemFormatOf(input.by, values, input.delimiter);
      const itemFiles = (kind: string) => new ItemFiles(this.name, kind, format, values.binary);
      const files = { failed: itemFiles('failed'), pending: itemFiles('pending') };
      const lines = { succeeded: this.#lines('succeeded'), errors: this.#lines('errors') };
      const kinds = await sort(handle, spool, { ...files, ...lines });
      for (const one of [...Object.values(files), ...Object.values(lines)]) await one.close();
      const succeeded = await lines.succeeded.publish();
      const failed = await files.failed.publish();
      const errors = await lines.errors.publish();
      const pending = await files.pending.publish();
      const wrong = spool.wrong instanceof Error ? spool.wrong.message : undefined;
      const isCut = !spool.isWhole;
      // The manifest may need its room.
      await spool.remove();
      await this.#end({
        ...standing,
        inputRead: spool.isWhole,
        inputError: wrong,
        files: { succeeded, failed, errors, pending },
      });
      const counts = {
        ...{ succeeded: lines.succeeded.total, failed: files.failed.total },
        pending: files.pending.total,
      };
      return { kinds, failed, pending, counts, isCut };
    } catch (error) {
      await this.#removeParts();
      await spool.remove().catch(() => {});
      const { code = '' } = error as NodeJS.ErrnoException;
      const isOurs = error instanceof OutputError || !/^E[A-Z]+$/.test(code);
      const why = isOurs ? error : new OutputError(this.name, 0, error as NodeJS.ErrnoException);
      // The run has ended, whether this fits or not.
      await this.#end({ ...standing, error: (why as Error).message }).catch(() => {});
      throw why;
    }
  }

  /** Closes it; leaves it as it was, if there was no `begin`. */
  async close(): Promise<void> {
    await this.#spool?.close();
    if (!this.#about && this.#isNew) await rmdir(this.name).catch(() => {});
  }

  /** They take room on a disk that may be full. */
  async #removeParts(): Promise<void> {
    for (const name of await readdir(this.name).catch(() => []))
      if (OURS.test(name) && name.endsWith(PART)) await rm(join(this.name, name), { force: true });
  }

  #lines(kind: string): LineFile {
    return new LineFile(this.name, `${kind}.ndjson`);
  }

  #end(rest: Record<string, unknown>): Promise<void> {
    return this.#manifest({ ...rest, endedAt: new Date().toISOString() });
  }

  async #manifest(rest: Record<string, unknown>): Promise<void> {
    const path = join(this.name, MANIFEST);
    const startedAt = this.#startedAt.toISOString();
    const { id, ...about } = this.#about as About;
    const text = JSON.stringify({ id, ...rest, startedAt, ...about }, undefined, 2);
    const output = await Output.open('--out-dir', path + PART);
    await output.line(text);
    await output.close();
    await rename(path + PART, path);
  }
}

/** A file of results or errors, which is made when it has its first line. */
class LineFile {
  readonly #folder: string;
  readonly #name: string;
  #output: Output | undefined;
  total = 0;

  constructor(folder: string, name: string) {
    this.#folder = folder;
    this.#name = name;
  }

  /** @throws OutputError */
  async add(line: string | Buffer): Promise<void> {
    this.#output ??= await Output.open('--out-dir', join(this.#folder, this.#name + PART));
    this.total += 1;
    await this.#output.line(line);
  }

  async close(): Promise<void> {
    await this.#output?.close();
  }

  async publish(): Promise<readonly ListedFile[]> {
    if (!this.#output) return [];
    await rename(join(this.#folder, this.#name + PART), join(this.#folder, this.#name));
    return [{ name: this.#name, count: this.total }];
  }
}

/** Refuses files of others. @throws InvalidOptionError */
async function expectOurs(
  path: string,
  found: readonly string[],
  id: string | undefined,
): Promise<void> {
  const text = await readFile(join(path, MANIFEST), 'utf8').catch(() => '');
  let manifest: { id?: unknown } | undefined;
  try {
    manifest = JSON.parse(text);
  } catch {
    // It is none.
  }
  if (id !== undefined && manifest?.id === id) return;
  const has =
    typeof manifest?.id === 'string' ? `the files of ${manifest.id}` : `${found[0]} in it`;
  throw new InvalidOptionError(
    '--out-dir',
    path,
    `a new or empty folder (this one has ${has}; take another, or move it away)`,
  );
}

interface Sorted {
  readonly succeeded: LineFile;
  readonly errors: LineFile;
  readonly failed: ItemFiles;
  readonly pending: ItemFiles;
}

/** Puts each payload where it belongs: all three streams are in the order of the indexes, and none is kept. */
async function sort(
  handle: RequestHandle,
  spool: Spool,
  { succeeded, errors, failed, pending }: Sorted,
): Promise<FailureKind[]> {
  const kinds = new FailureKinds();
  const results = new Ahead(handle.results({ order: 'index', wait: false, jsonText: true }));
  const failures = new Ahead<Failure>(handle.failures({ payload: true, jsonText: true }));
  const payloads = spool.payloads();
  try {
    for (let index = 0; ; index += 1) {
      const { done, value: payload } = await payloads.next();
      const result = await results.at(index);
      const failure = await failures.at(index);
      if (result) await succeeded.add(resultFormats.ndjson.line(result) as string);
      else if (failure) {
        kinds.note(index, failure.error);
        await errors.add(failureLine(failure));
        await failed.add((payload ?? failure.payload) as JsonText);
      } else if (payload) await pending.add(payload);
      if (done && results.ended && failures.ended) return kinds.sorted;
    }
  } finally {
    await results.close();
    await failures.close();
    await payloads.return(undefined);
  }
}

/** Items in the order of their indexes, which has gaps. */
class Ahead<Item extends { readonly index: number }> {
  readonly #items: AsyncIterator<Item>;
  #next: Item | undefined;
  ended = false;

  constructor(items: AsyncIterable<Item>) {
    this.#items = items[Symbol.asyncIterator]();
  }

  /** The item of an index, which rises from call to call. */
  async at(index: number): Promise<Item | undefined> {
    while (!this.ended && (this.#next === undefined || this.#next.index < index)) {
      const { done, value } = await this.#items.next();
      this.#next = done ? undefined : value;
      this.ended = done === true;
    }
    return this.#next?.index === index ? this.#next : undefined;
  }

  async close(): Promise<void> {
    await this.#items.return?.();
  }
}
