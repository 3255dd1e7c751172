import { isUtf8 } from 'node:buffer';
import { Transform, type TransformCallback } from 'node:stream';
import { PayloadError } from '@piecework/protocol/contract';

/**
 * Passes bytes on unchanged, and fails as soon as they are not UTF-8, because decoding would alter them. The error
 * names the line.
 */
export class Utf8Check extends Transform {
  readonly #delimiter: Buffer;
  readonly #advice: string;
  /** The first bytes of a character that has not ended yet. */
  #begun: Buffer = Buffer.alloc(0);
  #number = 1;

  /** @param advice appended to the error */
  constructor({ delimiter = '\n', advice = '' }: { delimiter?: string; advice?: string } = {}) {
    super();
    this.#delimiter = Buffer.from(delimiter);
    this.#advice = advice;
  }

  override _transform(chunk: Buffer, _: string, done: TransformCallback): void {
    const bytes = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk]);
    const whole = bytes.subarray(0, bytes.length - unended(bytes));
    this.#begun = bytes.subarray(whole.length);
    if (!isUtf8(whole)) {
      done(this.#error(whole));
      return;
    }
    this.#count(whole);
    done(null, whole);
  }

  override _flush(done: TransformCallback): void {
    // cure: bytes that are not UTF-8 are refused
    done(this.#begun.length === 0 ? null : this.#error(this.#begun));
  }

  #count(bytes: Buffer): void {
    const { length } = this.#delimiter;
    let at = bytes.indexOf(this.#delimiter);
    for (; at >= 0; at = bytes.indexOf(this.#delimiter, at + length)) this.#number += 1;
  }

  #error(bytes: Buffer): PayloadError {
    const { length } = this.#delimiter;
    let from = 0;
    for (;;) {
      const end = bytes.indexOf(this.#delimiter, from);
      if (end < 0 || !isUtf8(bytes.subarray(from, end))) break;
      this.#number += 1;
      from = end + length;
    }
    const what = this.#delimiter.toString() === '\n' ? 'line' : 'item';
    return new PayloadError(`${what} ${this.#number} is not UTF-8 text${this.#advice}`);
  }
}

/** How many bytes at the end belong to a character that is not complete. */
function unended(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? back : 0;
  }
  return 0;
}
