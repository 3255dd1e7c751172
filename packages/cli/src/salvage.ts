import type { ResultItem, ResultsOptions } from '@piecework/notifier';
import { pause } from '@piecework/protocol';
import type { RequestHandle } from 'piecework';
import { type Output, OutputError, writeResults } from './output.js';
import { writeOwnFile } from './own-file.js';
import type { ResultFormat } from './result-format.js';
import { ALL } from './run-files.js';

/**
 * Results are written in the order of the input, so one that takes long holds up all behind it. When a run is ended at
 * once, what has finished behind such a gap is written as well, in the order in which it finished, for a moment only.
 */

/** How long that may take, in ms. */
const SALVAGE_MS = 1_500;

type Item = ResultItem<unknown>;

export class Salvage implements AsyncIterable<Item> {
  readonly #handle: RequestHandle;
  readonly #output: Output;
  /** Whether its lines say which result they are: where they do not, none may stand in another's place. */
  readonly #numbered: boolean;
  /** How long results are written at all. */
  readonly #signal: AbortSignal;
  readonly #cut = new AbortController();
  /** The index up to which all was given in the order of the input, and how many results that were. */
  #last = -1;
  #inOrder = 0;
  #behind = 0;

  constructor(handle: RequestHandle, output: Output, format: ResultFormat, signal: AbortSignal) {
    this.#handle = handle;
    this.#output = output;
    this.#numbered = format !== 'text';
    this.#signal = signal;
  }

  /** All results in the order of the input; from `end` on what has finished besides, and no more. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    const { signal: cut } = this.#cut;
    try {
      const signal = AbortSignal.any([this.#signal, cut]);
      for await (const item of this.#handle.results({ ...ALL, signal })) {
        this.#last = item.index;
        this.#inOrder += 1;
        yield item;
      }
    } catch (error) {
      if (!cut.aborted) throw error;
      if (!this.#numbered) return;
      for await (const item of this.#finished(this.#last)) {
        this.#behind += 1;
        yield item;
      }
    }
  }

  /**
   * Ends the results, and answers in words what is where.
   * @param writing settles when they are written; with an OutputError when they could not be
   */
  async end(writing: Promise<OutputError | undefined>): Promise<string> {
    this.#cut.abort();
    const late = pause(SALVAGE_MS).then(() => 'late' as const);
    const written = await Promise.race([writing.catch(() => 'late' as const), late]);
    const failed = written instanceof OutputError ? written : undefined;
    const { name } = this.#output;
    const there = failed?.written ?? this.#inOrder + this.#behind;
    const has = `${failed ? `${failed.message}; it` : name} has ${results(there)}`;
    if (written === 'late') return `${has} or fewer: there was no time for more`;
    if (!failed && this.#numbered) {
      if (this.#behind === 0) return `${has}: all that finished`;
      return `${has}: all that finished, the last ${number(this.#behind)} in the order in which they did (see index)`;
    }
    let others = 0;
    const path = await Promise.race([
      writeOwnFile(`piecework-${this.#handle.id}-results.ndjson`, async (output) => {
        others = await writeAll(this.#finished(failed ? -1 : this.#last), output);
      }).catch(() => undefined),
      late,
    ]);
    if (path === undefined || path === 'late')
      return `${has}; what finished besides could not be written`;
    if (failed) return `${has}; all that finished: ${path}`;
    if (others > 0)
      return `${has}; ${number(others)} more finished behind one that did not: ${path}`;
    return `${has}: all that finished`;
  }

  /** What has finished of all behind `after`, in the order in which it did. */
  async *#finished(after: number): AsyncGenerator<Item> {
    const { counts } = await this.#handle.status();
    let left = counts.succeeded + counts.failed;
    if (left === 0) return;
    const options = {
      ...{ order: 'completion', failed: true, signal: AbortSignal.timeout(SALVAGE_MS) },
    } as const satisfies ResultsOptions;
    for await (const item of this.#handle.results(options)) {
      left -= 1;
      if (item.index > after) yield item;
      if (left === 0) return;
    }
  }
}

async function writeAll(items: AsyncIterable<Item>, output: Output): Promise<number> {
  let count = 0;
  const counted = async function* () {
    for await (const item of items) {
      count += 1;
      yield item;
    }
  };
  await writeResults(counted(), output);
  return count;
}

const number = (n: number) => n.toLocaleString('en-US');
const results = (n: number) => (n === 1 ? '1 result' : `${number(n)} results`);
