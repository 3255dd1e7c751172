import { resolve, sep } from 'node:path';
import { split } from '@piecework/producer/items';
import {
  InvalidOptionError,
  JsonText,
  knownJson,
  MAX_PAYLOAD_BYTES,
  PayloadError,
  PieceworkError,
} from '@piecework/protocol/contract';
import { statIfAny, statOf } from '../terminal/file-stat.js';
import { say } from '../terminal/print.js';
import { quoted } from '../terminal/quoted.js';
import { checkFormat, convertedBy, type InputBytes, openBytes } from './bytes.js';
import { type Columns, dataInHeader } from './columns.js';
import { delimiterOf } from './delimiter.js';
import type { InputValues } from './input-values.js';
import { jsonOf, ndjsonOf } from './json-records.js';
import { checkFit, isFolder, isPiped, namedPaths } from './paths.js';
import {
  type BadRecord,
  type GoodRecord,
  isBad,
  linesOf,
  MORE,
  NOT_UTF8,
  type Records,
} from './records.js';
import { rowsOf } from './rows.js';
import { Skipped } from './skipped.js';

/**
 * Opens the inputs of `--input`, which are read one after the other and split into items by `--split`. By default, a
 * folder is split into its files, and everything else into lines. The first item is awaited, so that an input that is
 * empty, or wrong from its beginning, is refused before anything is written.
 * @throws InvalidOptionError when the flags do not fit · PayloadError about the first item · PieceworkError `NO_ITEMS`
 */
export async function openInput(
  values: InputValues,
  command: 'run' | 'submit' = 'run',
): Promise<Input> {
  const { input } = values;
  if (input === undefined) {
    const allowed = `a file, a folder or -${isPiped() ? ' for standard input: --input -' : ''}`;
    throw new InvalidOptionError('--input', undefined, allowed);
  }
  const { allowEmpty = false } = values;
  const named = await namedPaths(input, allowEmpty, values.json === true);
  const by = values.split ?? (named.length > 0 && named.every(isFolder) ? 'files' : 'lines');
  checkFit(named, by, values);
  if (by !== 'files') await checkFormats(named, isTextOf(by, values.binary), command);
  const [, chunk] = /^chunk:(\d+)$/.exec(by) ?? [];
  const batch = chunk === undefined ? values.batch : Number(chunk);
  const items = new Input(named, by, values, batch, command);
  await items.begin();
  if (items.isEmpty && !allowEmpty) throw noItems(items);
  return items;
}

/** Whether a NUL in an input is a mistake. */
const isTextOf = (by: string, binary: boolean) =>
  !binary && !(by.startsWith('delimiter:') && delimiterOf(by.slice(10)).includes('\0'));

async function checkFormats(
  named: readonly string[],
  isText: boolean,
  command: string,
): Promise<void> {
  for (const path of named) {
    if (path === '-' || !statOf(path).isFile()) continue;
    await checkFormat(path, isText, command).catch((error: unknown) => {
      throw inputError(error, path, path);
    });
  }
}

function noItems({ paths, rows }: Input): PieceworkError {
  const [first = '', ...others] = paths.map((path) => (path === '-' ? 'standard input' : path));
  const where = others.length === 0 ? first : `${first} and ${others.length} more`;
  const why = rows === undefined ? '' : ' below its header';
  const message = `no items in ${where}${why}; --allow-empty accepts that`;
  return new PieceworkError(message, { code: 'NO_ITEMS' });
}

const LEAVES_OUT = '; --bad-rows FILE leaves out such records';

/** A part of the input that is no item, and that `--bad-rows` gets. */
export class LeftOut {
  constructor(
    readonly file: string,
    readonly unit: 'line' | 'item',
    readonly record: BadRecord | { readonly number: number; readonly wrong: string; item: unknown },
  ) {}
}

const jsonOfItem = (item: unknown) => (item instanceof JsonText ? item.text : JSON.stringify(item));

export class Input implements AsyncIterable<unknown>, Disposable {
  readonly #named: readonly string[];
  readonly #by: string;
  readonly #values: InputValues;
  readonly #command: string;
  readonly #maxPayloadBytes: number;
  readonly #items: AsyncIterator<unknown>;
  #first: IteratorResult<unknown> | undefined;
  #bytes: InputBytes | undefined;
  #closed = false;
  #whole = false;
  #columns: readonly string[] | undefined;
  #required: readonly string[] = [];
  #rows: string | undefined;
  #delimiter: string | undefined;
  #leaveOut: (one: LeftOut) => unknown = () => {};
  /** The place of the last item. */
  #where = '';

  constructor(
    named: readonly string[],
    by: string,
    values: InputValues,
    batch: number | undefined,
    command: string,
  ) {
    this.#command = command;
    this.#named = named;
    this.#by = by;
    this.#values = values;
    this.#maxPayloadBytes = values.maxPayloadBytes ?? MAX_PAYLOAD_BYTES;
    this.#items = batch === undefined ? this.#each() : this.#batches(batch);
  }

  /** The paths of the inputs; '-' is standard input. */
  get paths(): readonly string[] {
    return this.#named;
  }

  /** Whether the first item was awaited, and there was none. */
  get isEmpty(): boolean {
    return this.#first?.done === true;
  }

  /** The place of the last item: `big.ndjson: line 7`. */
  get where(): string {
    return this.#where;
  }

  /** The columns that all headers read so far have in common; undefined: there was no header. */
  get columns(): readonly string[] | undefined {
    return this.#columns;
  }

  /** How the rows of the last input are read, in words; undefined: there were none. */
  get rows(): string | undefined {
    return this.#rows;
  }

  /** The value of `--split`. */
  get by(): string {
    return this.#by;
  }

  /** What separates the fields of the rows of the last input; undefined: there were none. */
  get delimiter(): string | undefined {
    return this.#delimiter;
  }

  /** Whether all of it is in files, so that reading it waits for nobody. */
  get isInFiles(): boolean {
    return this.#named.every((path) => {
      const stat = path === '-' ? undefined : statIfAny(path);
      return stat !== undefined && (stat.isFile() || stat.isDirectory());
    });
  }

  /** Whether all of it was read. */
  get isWhole(): boolean {
    return this.#whole;
  }

  /** With `--bad-rows`: is called, and awaited, with each part that is no item, before the next item is read. */
  onLeftOut(leaveOut: (one: LeftOut) => unknown): void {
    this.#leaveOut = leaveOut;
  }

  /** Refuses further headers that do not have these columns. */
  require(columns: readonly string[]): void {
    this.#required = columns;
  }

  /** Reads the first item. */
  async begin(): Promise<void> {
    this.#first ??= await this.#items.next();
  }

  #onColumns({ names: header, shown }: Columns, delimiter: string): void {
    const by = delimiter === '\t' ? 'tabs' : JSON.stringify(delimiter);
    this.#delimiter = delimiter;
    this.#rows = `fields are separated by ${by}; ${shown}`;
    if (!header) return;
    const isFirst = this.#values.csvHeader === undefined && this.#columns === undefined;
    const hint = isFirst ? dataInHeader(header) : undefined;
    if (hint !== undefined && !this.#values.json) say(`${this.#where}: ${hint}`);
    const absent = this.#required.find((name) => !header.includes(name));
    if (absent !== undefined)
      throw new PayloadError(`the header has no ${JSON.stringify(absent)}, which --exec uses`);
    this.#columns = this.#columns?.filter((name) => header.includes(name)) ?? header;
  }

  [Symbol.asyncIterator](): AsyncIterator<unknown> {
    return {
      next: async () => {
        for (;;) {
          const next = this.#first ?? (await this.#items.next());
          this.#first = undefined;
          this.#whole ||= next.done === true && !this.#closed;
          if (!(next.value instanceof LeftOut)) return next;
          await this.#leaveOut(next.value);
        }
      },
      return: async () => {
        this.close();
        return { done: true, value: undefined };
      },
    };
  }

  /** Adds the place of the last item to an error about it. */
  blame(error: unknown): unknown {
    if (!(error instanceof PayloadError) || error.index === undefined) return error;
    const message = error.message
      .replace(/^item \d+: /, '')
      .replace(/\(maxPayloadBytes\)$/, '(--max-payload-bytes allows more)');
    return new PayloadError(`${this.#where}: ${message}`);
  }

  /** Closes the input that is being read, without waiting. */
  close(): void {
    this.#closed = true;
    this.#bytes?.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Arrays of `size` items; the last may be shorter. */
  async *#batches(size: number): AsyncGenerator<unknown> {
    let batch: string[] = [];
    let length = 0;
    const take = () => {
      const whole = knownJson(`[${batch.join(',')}]`);
      batch = [];
      length = 0;
      return whole;
    };
    const each = this.#each();
    for (;;) {
      const next = await each.next().catch((error: unknown) => ({ done: true, error }) as const);
      // What was read before an error is run.
      if (next.done && batch.length > 0) yield take();
      if ('error' in next) throw next.error;
      if (next.done) return;
      const item = next.value;
      if (item instanceof LeftOut) {
        yield item;
        continue;
      }
      const text = jsonOfItem(item);
      batch.push(text);
      length += text.length;
      // Refused before the whole batch is in memory.
      if (length > this.#maxPayloadBytes) {
        const most = `${this.#maxPayloadBytes} bytes: take fewer, or --max-payload-bytes allows more`;
        throw new PayloadError(`${this.#where}: a batch of ${size} has more than ${most}`);
      }
      if (batch.length === size) yield take();
    }
  }

  /** How an input is split into records; undefined: its name is the item. */
  #records(): Records | undefined {
    const [by, { binary, csvDelimiter, csvHeader }] = [this.#by, this.#values];
    const maxPayloadBytes = this.#maxPayloadBytes;
    if (by === 'files') return undefined;
    if (by === 'ndjson') return ndjsonOf(maxPayloadBytes);
    if (by === 'json') return jsonOf(this.#values.jsonPath?.split('.') ?? [], maxPayloadBytes);
    if (by === 'csv' || by === 'tsv')
      return rowsOf({
        ...{ kind: by, maxPayloadBytes, goesOn: this.#leavesOut },
        delimiter: csvDelimiter === undefined ? undefined : delimiterOf(csvDelimiter),
        header: csvHeader === 'none' ? csvHeader : csvHeader?.split(','),
        onColumns: (columns, delimiter) => this.#onColumns(columns, delimiter),
      });
    const delimiter = by.startsWith('delimiter:') ? delimiterOf(by.slice(10)) : undefined;
    return linesOf({ delimiter, binary, maxPayloadBytes });
  }

  get #leavesOut(): boolean {
    return this.#values.badRows !== undefined;
  }

  async *#each(): AsyncGenerator<unknown> {
    const recordsOf = this.#records();
    const unit = this.#by.startsWith('delimiter:') ? 'item' : 'line';
    for (const path of this.#named) {
      if (this.#closed) return;
      const name = path === '-' ? 'standard input' : path;
      this.#where = name;
      if (!recordsOf) {
        if (isFolder(path)) yield* this.#files(path);
        else yield resolve(path);
        continue;
      }
      try {
        this.#bytes = undefined;
        const { binary } = this.#values;
        this.#bytes = await openBytes(path, binary, isTextOf(this.#by, binary), this.#command);
        const { stream } = this.#bytes;
        for await (const record of recordsOf(stream)) {
          const where = record.where ?? `${unit} ${record.number}`;
          this.#where = `${name}: ${where}`;
          const wrong = isBad(record) ? record.wrong : this.#tooLarge(record);
          if (wrong === undefined) yield (record as GoodRecord).item;
          else if (this.#leavesOut && !('isHeader' in record))
            yield new LeftOut(name, unit, { ...record, wrong });
          else {
            const cure = 'isHeader' in record || wrong === NOT_UTF8 ? '' : LEAVES_OUT;
            throw new PayloadError(`${where} ${wrong}${cure}`);
          }
        }
      } catch (error) {
        if (this.#closed) return;
        const isOther = error instanceof PayloadError && error.message.endsWith(NOT_UTF8);
        const said = isOther ? this.#conversion(error, path) : error;
        throw inputError(this.#withTest(said, path), name, this.#where);
      } finally {
        this.#bytes?.close();
      }
    }
  }

  /** The files below a folder. At its end it says how much was skipped. */
  async *#files(folder: string): AsyncGenerator<string> {
    const skipped = new Skipped();
    const named = this.#named.map((path) => resolve(path));
    // What another input names within this folder is an item of that one.
    const others = named.filter((path) => path.startsWith(`${resolve(folder)}${sep}`));
    const files = new Set(others);
    try {
      for await (const file of split.files(folder, { onSkipped: (_, why) => skipped.add(why) }))
        if (files.has(file) || others.some((path) => file.startsWith(`${path}${sep}`)))
          skipped.add('named twice');
        else yield file;
    } catch (error) {
      throw inputError(error, folder, folder);
    }
    if (!this.#values.json) skipped.say(folder);
  }

  /** With `--bad-rows`: why an item fits no payload, if its JSON is too long. Else the submission finds that. */
  #tooLarge({ item }: GoodRecord): string | undefined {
    if (!this.#leavesOut) return undefined;
    const bytes = Buffer.byteLength(jsonOfItem(item));
    if (bytes <= this.#maxPayloadBytes) return undefined;
    return `has ${bytes} bytes as JSON; allowed: ${this.#maxPayloadBytes} (${MORE})`;
  }

  /** Broken compressed data may look like a wrong record before it is known to be broken. */
  #withTest(error: unknown, path: string): unknown {
    const unpack = this.#bytes?.unpack;
    const isRecord = error instanceof PayloadError && !error.message.startsWith('broken ');
    if (!isRecord || unpack === undefined || path === '-') return error;
    const test = `${unpack === 'gunzip -c' ? 'gzip -t' : 'zstd -t'} ${quoted(path)}`;
    const hint = `${error.message}; ${test} says whether the compressed data is broken`;
    return new PayloadError(hint, error.cause);
  }

  /** Adds the command that converts an input that is not UTF-8. */
  #conversion({ message }: PayloadError, path: string): PayloadError {
    const isText = this.#by === 'lines' || this.#by.startsWith('delimiter:');
    const bytes = isText ? '; --binary passes the bytes unchanged' : '';
    const pipe = convertedBy('WINDOWS-1252', path, this.#command, this.#bytes?.unpack);
    return new PayloadError(
      `${message}: if it is Windows-1252 or Latin-1, this reads it: ${pipe}${bytes}`,
    );
  }
}

/** Says what is wrong with the input `name`, which was read up to `where`, and what to do. */
function inputError(error: unknown, name: string, where: string): PieceworkError {
  if (error instanceof PayloadError) {
    return new PayloadError(`${name}: ${error.message}`, error.cause);
  }
  const { code = '', message } = error as NodeJS.ErrnoException;
  const behind = where === name ? '' : ` after ${where.slice(name.length + 2)}`;
  if (code.startsWith('Z_'))
    return new PayloadError(`${name}: broken gzip data${behind} (${message})`);
  const what = `${name} cannot be read${behind}: ${message}`;
  return new PieceworkError(what, { code: 'INPUT', cause: error });
}
