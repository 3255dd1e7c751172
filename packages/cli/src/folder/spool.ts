import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { LineSplitter } from '@piecework/producer/items';
import { type JsonText, knownJson, LARGEST_VALUE_BYTES } from '@piecework/protocol/contract';
import type { Input } from '../input/input.js';
import { jsonTextOf } from '../json/json-parts.js';
import { Output, OutputError } from '../output/output.js';

/** Stands for a line end between two values, where JSON has no other control character. */
const BREAK = '\u0001';

/**
 * The payloads of a run in the order of the input, one a line, while the request runs. Redis keeps none of those that
 * succeeded or were cancelled, and an input may be standard input, or a folder that the run itself changes.
 */
export class Spool {
  readonly #path: string;
  readonly #output: Output;
  #input: Input | undefined;
  #items: AsyncIterator<unknown> | undefined;
  /** Why it does not have all items. */
  #cut: OutputError | undefined;
  #wrong: unknown;

  private constructor(path: string, output: Output) {
    this.#path = path;
    this.#output = output;
  }

  /** @throws InvalidOptionError of `--out-dir` when it cannot be written */
  static async open(path: string): Promise<Spool> {
    return new Spool(path, await Output.open('--out-dir', path));
  }

  get cut(): OutputError | undefined {
    return this.#cut;
  }

  /** What was wrong with the input: it was not read any further. */
  get wrong(): unknown {
    return this.#wrong;
  }

  /** Whether all of the input was read. */
  get isWhole(): boolean {
    return this.#input?.isWhole ?? false;
  }

  /** The items of an input, each noted before it is given. The input stays open when the reader of them stops. */
  async *noting(input: Input): AsyncGenerator<unknown> {
    this.#input = input;
    this.#items = input[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await this.#next(this.#items);
      if (done) break;
      yield value;
    }
  }

  /** Notes the rest of an input that is in files. Nobody is waited for who still writes one. */
  async rest(): Promise<void> {
    const [input, items] = [this.#input, this.#items];
    if (!input || !items || input.isWhole || this.#wrong !== undefined || !input.isInFiles) return;
    try {
      while (!(await this.#next(items)).done);
    } catch (error) {
      this.#wrong = error;
    }
  }

  async #next(items: AsyncIterator<unknown>): Promise<IteratorResult<unknown>> {
    const next = await items.next().catch((error: unknown) => {
      this.#wrong = error;
      throw error;
    });
    if (!next.done && !this.#cut) {
      const { text } = jsonTextOf(next.value) as JsonText;
      try {
        await this.#output.line(text.replaceAll('\n', BREAK));
      } catch (error) {
        if (!(error instanceof OutputError)) throw error;
        this.#cut = error;
      }
    }
    return next;
  }

  /** All payloads, in their order. @throws OutputError when they could not be written */
  async *payloads(): AsyncGenerator<JsonText> {
    if (this.#cut) throw this.#cut;
    await this.#output.flush();
    const lines = new LineSplitter({ maxBytes: 2 * LARGEST_VALUE_BYTES });
    pipeline(createReadStream(this.#path), lines, () => {});
    for await (const line of lines as AsyncIterable<string>)
      yield knownJson(line.replaceAll(BREAK, '\n'));
  }

  async close(): Promise<void> {
    await this.#output.close().catch(() => {});
  }

  async remove(): Promise<void> {
    await this.close();
    await rm(this.#path, { force: true });
  }
}
