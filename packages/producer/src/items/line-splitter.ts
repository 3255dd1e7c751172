import { Transform, type TransformCallback } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { PayloadError } from '@piecework/protocol/contract';

export interface LineSplitterOptions {
  /** Longest line without its end, in bytes. */
  readonly maxBytes: number;
  /** What separates two lines. @default '\n', and CRLF too */
  readonly delimiter?: string;
  /** Whether each character of a line is one of its bytes ('latin1'); nothing is removed then. @default false */
  readonly binary?: boolean;
  /** Appended to the error of a line that is too long. */
  readonly advice?: string;
  /**
   * Whether a line that is too long does not fail the stream: its first `maxBytes` + 2 bytes are pushed as a line as
   * soon as they are there, and the rest of it is left out. Only with `binary`. @default false
   */
  readonly cuts?: boolean;
}

/**
 * Cuts text in UTF-8 into its lines, without their ends (LF or CRLF) and without a byte order mark before the
 * first. A line that spans many chunks is searched once, and joined at its end. A line that is longer than
 * `maxBytes` fails the stream as soon as that is known; the error names the number of the line.
 */
export class LineSplitter extends Transform {
  readonly #options: LineSplitterOptions;
  readonly #delimiter: string;
  readonly #encoding: 'utf8' | 'latin1';
  readonly #decoder: StringDecoder;
  /** The last characters, which may begin a delimiter. */
  #rest = '';
  /** Parts of the line that has not ended yet. */
  #begun: string[] = [];
  #begunBytes = 0;
  #number = 1;
  #atStart: boolean;
  /** Whether the rest of a line is left out. */
  #skips = false;

  constructor(options: LineSplitterOptions) {
    super({ readableObjectMode: true });
    const { delimiter = '\n', binary = false } = options;
    this.#options = options;
    this.#encoding = binary ? 'latin1' : 'utf8';
    this.#decoder = new StringDecoder(this.#encoding);
    this.#delimiter = binary ? Buffer.from(delimiter).toString('latin1') : delimiter;
    this.#atStart = !binary;
  }

  override _transform(chunk: Buffer, _: string, done: TransformCallback): void {
    done(this.#cut(this.#rest + this.#decoder.write(chunk), this.#delimiter.length - 1));
  }

  override _flush(done: TransformCallback): void {
    const error = this.#cut(this.#rest + this.#decoder.end(), 0);
    const last = this.#begun.join('');
    if (!error && last !== '') this.push(last);
    done(error);
  }

  /** @param keep how many characters at the end may begin a delimiter */
  #cut(decoded: string, keep: number): PayloadError | null {
    const text = this.#atStart ? decoded.replace(/^\ufeff/, '') : decoded;
    if (decoded !== '') this.#atStart = false;
    let from = 0;
    for (
      let end = text.indexOf(this.#delimiter);
      end >= 0;
      end = text.indexOf(this.#delimiter, from)
    ) {
      const error = this.#add(text.slice(from, end));
      if (error) return error;
      if (!this.#skips) this.push(this.#line());
      this.#skips = false;
      this.#begun = [];
      this.#begunBytes = 0;
      this.#number += 1;
      from = end + this.#delimiter.length;
    }
    const until = Math.max(from, text.length - keep);
    this.#rest = text.slice(until);
    return from < until ? this.#add(text.slice(from, until)) : null;
  }

  #line(): string {
    const line = this.#begun.join('');
    return this.#takesCrlf && line.endsWith('\r') ? line.slice(0, -1) : line;
  }

  get #takesCrlf(): boolean {
    return this.#delimiter === '\n' && this.#encoding === 'utf8';
  }

  #add(part: string): PayloadError | null {
    if (this.#skips) return null;
    if (part !== '') this.#begun.push(part);
    this.#begunBytes += Buffer.byteLength(part, this.#encoding);
    const { maxBytes, advice = '', cuts = false } = this.#options;
    if (cuts) {
      if (this.#begunBytes < maxBytes + 2) return null;
      this.push(this.#begun.join('').slice(0, maxBytes + 2));
      this.#begun = [];
      this.#skips = true;
      return null;
    }
    // cure: a line that is too long is refused
    if (this.#begunBytes <= maxBytes) return null;
    // The last byte may be the first half of a CRLF.
    const isEnd = this.#begunBytes === maxBytes + 1 && this.#begun.at(-1)?.endsWith('\r');
    if (isEnd && this.#takesCrlf) return null;
    const what = this.#delimiter === '\n' ? 'line' : 'item';
    return new PayloadError(`${what} ${this.#number} has more than ${maxBytes} bytes${advice}`);
  }
}
