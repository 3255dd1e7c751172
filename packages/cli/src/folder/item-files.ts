import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonText } from '@piecework/protocol/contract';
import { isMisread } from '../input/bytes.js';
import { Output } from '../output/output.js';
import type { Encoding, ItemFormat } from './encoding.js';

/** A file of the folder, as the manifest lists it. */
export interface ListedFile {
  readonly name: string;
  readonly count: number;
  /** The `--split` that reads it. */
  readonly split?: string;
  /** Why `--input` refuses it, or reads other items. */
  readonly unreadable?: string;
}

/** Until everything is written, names of files have this end. */
export const PART = '.part';

/** As many first bytes as decide how an input is read. */
const HEAD_BYTES = 512;
const MARK = Buffer.from('\ufeff');

/** The items of one kind (`failed`, `pending`), in as many files as their format needs: nearly always one. */
export class ItemFiles {
  readonly #folder: string;
  readonly #kind: string;
  readonly #format: ItemFormat;
  readonly #binary: boolean;
  readonly #files: ListedFile[] = [];
  #file:
    | { readonly name: string; readonly output: Output; readonly encoding: Encoding }
    | undefined;
  /** The first bytes of the file, which are not written yet. */
  #head: Buffer | undefined;
  #misread = false;
  #count = 0;
  /** Number of payloads. */
  total = 0;

  constructor(folder: string, kind: string, format: ItemFormat, binary: boolean) {
    this.#folder = folder;
    this.#kind = kind;
    this.#format = format;
    this.#binary = binary;
  }

  /** @throws OutputError */
  async add(payload: JsonText): Promise<void> {
    this.total += 1;
    for (const item of this.#format.itemsOf(payload)) {
      const text = this.#file?.encoding.next(item);
      if (text !== undefined) await this.#put(text);
      else {
        await this.#end();
        const encoding = await this.#begin();
        await this.#put(encoding.next(item) as string | Buffer);
      }
      this.#count += 1;
    }
  }

  /** Writes the rest. @throws OutputError */
  async close(): Promise<void> {
    await this.#end();
  }

  /** Gives the files their names. */
  async publish(): Promise<readonly ListedFile[]> {
    for (const { name } of this.#files)
      await rename(join(this.#folder, name + PART), join(this.#folder, name));
    return this.#files;
  }

  async #begin(): Promise<Encoding> {
    const number = this.#files.length + 1;
    const name = `${this.#kind}${number === 1 ? '' : `-${number}`}.${this.#format.extension}`;
    const output = await Output.open('--out-dir', join(this.#folder, name + PART));
    const encoding = this.#format.begin();
    this.#file = { name, output, encoding };
    this.#head = Buffer.alloc(0);
    return encoding;
  }

  async #put(text: string | Buffer): Promise<void> {
    if (!this.#head) return await this.#file?.output.text(text);
    this.#head = Buffer.concat([this.#head, Buffer.from(text as string)]);
    if (this.#head.length >= HEAD_BYTES) await this.#putHead();
  }

  /** Bytes that do not look like text to a reader get a byte order mark before them, which it leaves out. */
  async #putHead(): Promise<void> {
    const head = this.#head;
    if (!head) return;
    this.#head = undefined;
    const misread = isMisread(head, this.#binary);
    this.#misread = misread && this.#binary;
    await this.#file?.output.text(misread && !this.#binary ? Buffer.concat([MARK, head]) : head);
  }

  async #end(): Promise<void> {
    if (!this.#file) return;
    const { name, output, encoding } = this.#file;
    if (encoding.end !== '') await this.#put(encoding.end);
    await this.#putHead();
    await output.close();
    const { split, unreadable = this.#misread ? UNREADABLE : undefined } = encoding;
    this.#files.push({ name, count: this.#count, split, ...(unreadable ? { unreadable } : {}) });
    this.#file = undefined;
    this.#count = 0;
  }
}

const UNREADABLE = 'its first item begins as a compressed file or another format does';
