import { Transform, type TransformCallback } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { PayloadError } from '@piecework/protocol';

/**
 * Cuts text in UTF-8 into its lines, without their ends (LF or CRLF) and without a byte order mark before the
 * first. A line that goes on over many pieces is looked through once, and put together at its end. One that
 * is longer than `maxBytes` fails the stream as soon as that is known, and names its number.
 */
export class LineSplitter extends Transform {
  readonly #maxBytes: number;
  readonly #decoder = new StringDecoder('utf8');
  /** Of the line that has not ended yet. */
  #begun: string[] = [];
  #begunBytes = 0;
  #number = 1;
  #atStart = true;

  constructor(maxBytes: number) {
    super({ readableObjectMode: true });
    this.#maxBytes = maxBytes;
  }

  override _transform(chunk: Buffer, _: string, done: TransformCallback): void {
    done(this.#cut(this.#decoder.write(chunk)));
  }

  override _flush(done: TransformCallback): void {
    const error = this.#cut(this.#decoder.end());
    const last = this.#begun.join('');
    if (!error && last !== '') this.push(last);
    done(error);
  }

  #cut(decoded: string): PayloadError | null {
    const text = this.#atStart ? decoded.replace(/^\ufeff/, '') : decoded;
    if (decoded !== '') this.#atStart = false;
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      const error = this.#add(text.slice(from, end));
      if (error) return error;
      const line = this.#begun.join('');
      this.push(line.endsWith('\r') ? line.slice(0, -1) : line);
      this.#begun = [];
      this.#begunBytes = 0;
      this.#number += 1;
      from = end + 1;
    }
    return from < text.length ? this.#add(text.slice(from)) : null;
  }

  #add(part: string): PayloadError | null {
    if (part !== '') this.#begun.push(part);
    this.#begunBytes += Buffer.byteLength(part);
    if (this.#begunBytes <= this.#maxBytes) return null;
    // It may be half of a line end.
    const isEnd = this.#begunBytes === this.#maxBytes + 1 && this.#begun.at(-1)?.endsWith('\r');
    if (isEnd) return null;
    return new PayloadError(
      `line ${this.#number} has more than ${this.#maxBytes} bytes: see that lines end in LF or CRLF, or raise maxLineBytes and maxPayloadBytes`,
    );
  }
}
