import { pipeline } from 'node:stream';
import { Utf8Check } from '@piecework/producer/items';
import { type JsonText, jsonText, PayloadError } from '@piecework/protocol/contract';
import { UnexpectedCharacter, ValueScan } from '../json/value-scan.js';
import {
  errorLast,
  type GoodRecord,
  type InputRecord,
  isBad,
  linesOf,
  MORE,
  type Records,
} from './records.js';

const [COMMA, COLON, QUOTE] = [0x2c, 0x3a, 0x22];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Each line is a JSON value, which is kept as it is; empty ones are skipped. An input that is nothing but an array in
 * one line is refused: most likely its elements were meant. The first line, if it is an array, therefore waits for the
 * second. An empty line before it says that it is an item.
 */
export function ndjsonOf(maxPayloadBytes: number): Records {
  const advice = 'an array is read by --split json; ';
  const lines = linesOf({ binary: false, maxPayloadBytes, advice });
  return async function* (bytes) {
    let isFirst = true;
    let array: GoodRecord | undefined;
    try {
      for await (const line of lines(bytes)) {
        if (!isBad(line) && (line.item as string).trim() === '') continue;
        const record = isBad(line) ? line : lineValue(line, isFirst);
        if (array) yield array;
        array = !isBad(record) && line.number === 1 && isArray(record) ? record : undefined;
        isFirst = false;
        if (!array) yield record;
      }
    } catch (error) {
      if (array) yield array;
      throw error;
    }
    if (array)
      throw new PayloadError(
        `line ${array.number} is an array, and there are no other lines: --split json makes each of its elements an item`,
      );
  };
}

const isArray = ({ item }: GoodRecord) => /^\s*\[/.test((item as JsonText).text);

function lineValue({ item, number }: GoodRecord, isFirst: boolean): InputRecord {
  const line = item as string;
  try {
    return { item: jsonText(line), number };
  } catch (error) {
    const isBegun = isFirst && /^\s*[[{]/.test(line);
    const cure = isBegun ? '--split json for an array or values of several lines' : '--split lines';
    const wrong = `is ${(error as Error).message}; correct it, or use ${cure}`;
    return { wrong, number, bytes: Buffer.from(line).toString('latin1') };
  }
}

/**
 * Each element of an array is an item, and so is every other value; several values, and arrays, may follow one another.
 * With a `path` the names of it lead to the array or the value, in each value of the input. Items are kept as they are,
 * and checked one by one. What the path does not lead to is passed over, and only checked as far as finding its end needs.
 */
export function jsonOf(path: readonly string[], maxPayloadBytes: number): Records {
  return async function* (bytes) {
    const checked = new Utf8Check();
    pipeline(errorLast(bytes, checked), checked, () => {});
    yield* new JsonInput(checked, path, maxPayloadBytes).items();
  };
}

class JsonInput {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #path: readonly string[];
  readonly #maxBytes: number;
  #chunk: Buffer = Buffer.alloc(0);
  #at = 0;
  #line = 1;
  #count = 0;
  /** The place of the last item. */
  #where = '';

  constructor(bytes: AsyncIterable<Buffer>, path: readonly string[], maxBytes: number) {
    this.#chunks = bytes[Symbol.asyncIterator]();
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  async *items(): AsyncGenerator<InputRecord> {
    while ((await this.#next()) !== undefined) yield* this.#follow(0);
  }

  /** The items of the value that begins here. `depth`: how many names of the path have led to it */
  async *#follow(depth: number): AsyncGenerator<InputRecord> {
    const name = this.#path[depth];
    const byte = await this.#next();
    if (name !== undefined) yield* this.#member(name, depth);
    else if (byte === OPEN_ARRAY) yield* this.#elements();
    else yield await this.#item('value');
  }

  async *#elements(): AsyncGenerator<InputRecord> {
    const begin = this.#line;
    this.#at += 1;
    if ((await this.#next()) === CLOSE_ARRAY) {
      this.#at += 1;
      return;
    }
    for (;;) {
      yield await this.#item('element');
      const isLast = await this.#ends(CLOSE_ARRAY, `the array that begins in line ${begin}`);
      if (isLast) return;
    }
  }

  /** The items of one member of the object that begins here; all other members are passed over. */
  async *#member(name: string, depth: number): AsyncGenerator<InputRecord> {
    const object = `the object that begins in line ${this.#line}`;
    const path = this.#path.slice(0, depth + 1).join('.');
    if ((await this.#next()) !== OPEN_OBJECT)
      throw new PayloadError(`line ${this.#line} has no object there: --json-path ${path}`);
    this.#at += 1;
    let times = 0;
    if ((await this.#next()) === CLOSE_OBJECT) this.#at += 1;
    else
      for (let isLast = false; !isLast; isLast = await this.#ends(CLOSE_OBJECT, object)) {
        const key = await this.#key(object);
        if (key !== name) await this.#value(`the value of ${JSON.stringify(key)}`, false);
        else if (times++ > 0) throw this.#broken(`${object} has ${JSON.stringify(name)} twice`);
        else yield* this.#follow(depth + 1);
      }
    if (times === 0) throw new PayloadError(`${object} has no ${path}: see --json-path`);
  }

  async #key(object: string): Promise<string> {
    if ((await this.#next()) !== QUOTE) throw await this.#unexpected(object);
    const key = jsonText<string>(await this.#value(`a name in ${object}`)).value;
    if ((await this.#next()) !== COLON) throw await this.#unexpected(object);
    this.#at += 1;
    await this.#next();
    return key;
  }

  async #item(unit: 'element' | 'value'): Promise<InputRecord> {
    this.#count += 1;
    const number = this.#line;
    const where = `${unit} ${this.#count} (line ${number})`;
    const text = await this.#value(where);
    this.#where = where;
    try {
      return { item: jsonText(text), number, where };
    } catch (error) {
      const wrong = `is ${(error as Error).message}`;
      return { wrong, number, where, bytes: Buffer.from(text).toString('latin1') };
    }
  }

  /** Passes what stands behind a value: a comma and white space, or the end. @returns whether it is the end */
  async #ends(close: number, what: string): Promise<boolean> {
    const byte = await this.#next();
    if (byte !== close && byte !== COMMA) throw await this.#unexpected(what);
    this.#at += 1;
    if (byte === close) return true;
    if ((await this.#next()) === close)
      throw this.#broken(`there is a comma at the end of ${what}`);
    return false;
  }

  /** The text of the value that begins here. `keep`: whether it is wanted */
  async #value(where: string, keep = true): Promise<string> {
    const scan = new ValueScan();
    const parts: Buffer[] = [];
    let length = 0;
    for (let end = -1; end < 0; ) {
      if (this.#at === this.#chunk.length && !(await this.#fill())) {
        // A number ends with the input.
        if (parts.length > 0 && scan.mayEnd) break;
        throw this.#broken(`the input ends in ${where}`);
      }
      try {
        end = scan.end(this.#chunk, this.#at);
      } catch (error) {
        if (!(error instanceof UnexpectedCharacter)) throw error;
        const line = this.#line + scan.lines;
        throw new PayloadError(`${where} is not JSON: ${error.message} in line ${line}`);
      }
      const part = this.#chunk.subarray(this.#at, end < 0 ? undefined : end);
      this.#at += part.length;
      length += part.length;
      if (keep) parts.push(part);
      // cure: an element that is too long is refused
      if (keep && length > this.#maxBytes)
        throw new PayloadError(`${where} has more than ${this.#maxBytes} bytes: ${MORE}`);
    }
    this.#line += scan.lines;
    return Buffer.concat(parts).toString();
  }

  /** The next byte that is no white space, which it does not pass; undefined: the input has ended. */
  async #next(): Promise<number | undefined> {
    for (;;) {
      for (; this.#at < this.#chunk.length; this.#at += 1) {
        const byte = this.#chunk[this.#at];
        if (byte === 0x0a) this.#line += 1;
        else if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return byte;
      }
      if (!(await this.#fill())) return undefined;
    }
  }

  /** Reads the next chunk. @returns false: the input has ended */
  async #fill(): Promise<boolean> {
    do {
      const { done, value } = await this.#chunks.next();
      if (done) return false;
      this.#chunk = value;
      this.#at = 0;
    } while (this.#chunk.length === 0);
    return true;
  }

  async #unexpected(within: string): Promise<PayloadError> {
    if ((await this.#next()) === undefined) return this.#broken(`the input ends in ${within}`);
    const [character] = this.#chunk.subarray(this.#at, this.#at + 4).toString();
    return this.#broken(`unexpected ${character} in line ${this.#line}`);
  }

  #broken(what: string): PayloadError {
    const behind = this.#where === '' ? '' : `, behind ${this.#where}`;
    return new PayloadError(`not JSON: ${what}${behind}`);
  }
}
