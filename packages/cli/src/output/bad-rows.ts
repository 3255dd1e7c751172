import { JsonText } from '@piecework/protocol/contract';
import { binaryOf } from '../input/binary.js';
import type { LeftOut } from '../input/input.js';
import { utf8Of } from '../input/records.js';
import { say } from '../terminal/print.js';
import { Output, OutputError } from './output.js';

/**
 * `--bad-rows FILE`: a line of JSON for each record of the input that is no item. Nothing is written into the file
 * before `begin`. A file that fails does not stop the run.
 */
export class BadRows {
  readonly #output: Output;
  readonly #json: boolean;
  /** Lines that wait for `begin`. */
  #held: string[] | undefined = [];
  #count = 0;
  #lines = 0;
  #cut: OutputError | undefined;

  private constructor(output: Output, json: boolean) {
    this.#output = output;
    this.#json = json;
  }

  /** @param again whether the file may be continued @throws InvalidOptionError */
  static async open(path: string, json: boolean, again = false): Promise<BadRows> {
    return new BadRows(await Output.open('--bad-rows', path, again), json);
  }

  get name(): string {
    return this.#output.name;
  }

  /** Number of records. */
  get count(): number {
    return this.#count;
  }

  /** Number of lines of the input that they had. */
  get lines(): number {
    return this.#lines;
  }

  /** Why the file does not have all of them. */
  get cut(): OutputError | undefined {
    return this.#cut;
  }

  readonly isFile = true;

  size(): Promise<number> {
    return this.#output.size();
  }

  async add(one: LeftOut): Promise<void> {
    this.#count += 1;
    this.#lines += ('lines' in one.record ? one.record.lines : undefined) ?? 1;
    const line = badLine(one);
    if (this.#held) this.#held.push(line);
    else await this.#write(() => this.#output.line(line));
  }

  /** Empties the file; `again`: keeps what is the same. Later calls do nothing. */
  async begin(again = false): Promise<void> {
    if (!this.#held) return;
    const held = this.#held;
    this.#held = undefined;
    await this.#output.begin(again);
    for (const line of held) await this.#write(() => this.#output.line(line));
  }

  /** All of the input was read: removes what the file has behind the last record. */
  async end(): Promise<void> {
    if (!this.#held) await this.#write(() => this.#output.end());
  }

  /** Closes the file; leaves it as it was, if there was no `begin`. */
  async close(): Promise<void> {
    if (this.#held) await this.#output.abandon();
    else await this.#write(() => this.#output.close());
  }

  async #write(write: () => Promise<void> | undefined): Promise<void> {
    if (this.#cut) return;
    try {
      await write();
    } catch (error) {
      if (!(error instanceof OutputError)) throw error;
      this.#cut = error;
      if (!this.#json) say(error.message);
    }
  }
}

function badLine({ file, unit, record }: LeftOut): string {
  const { number, wrong: reason } = record;
  if (!('bytes' in record))
    return JSON.stringify({ file, [unit]: number, reason, record: textOf(record.item) });
  const { lines, bytes, more } = record;
  const whole = more ? withoutBegun(bytes) : bytes;
  const text = utf8Of(whole) ?? binaryOf(Buffer.from(bytes, 'latin1'));
  return JSON.stringify({ file, [unit]: number, lines, reason, record: text, more });
}

const textOf = (item: unknown) => (item instanceof JsonText ? item.text : item);

/** Without a character of UTF-8 at the end that is cut off. */
const withoutBegun = (bytes: string) => bytes.replace(/[\xc0-\xff][\x80-\xbf]{0,2}$/, '');

/** `3 bad records were left out; bad.ndjson has them`, if there are any. */
export function leftOutLine(rows: BadRows | undefined): string | undefined {
  if (!rows || rows.count === 0) return undefined;
  const number = (n: number) => n.toLocaleString('en-US');
  const { count, lines, cut, name } = rows;
  const records = count === 1 ? '1 bad record' : `${number(count)} bad records`;
  const of = lines > count ? ` (${number(lines)} lines)` : '';
  const where = cut ? `not all are in ${cut.message}` : `see ${name}`;
  return `left out: ${records}${of} of the input; ${where}`;
}

/** The same as fields of JSON. */
export function leftOutJson(rows: BadRows | undefined): Record<string, unknown> {
  if (!rows) return {};
  const { count, name, cut } = rows;
  return { badRecords: count, badRowsFile: name, badRowsError: cut?.message };
}
