import type { ResultItem, ResultsOptions } from '@piecework/notifier';
import { pause } from '@piecework/protocol';
import type { RequestHandle } from 'piecework';
import { type Output, OutputError, writeResults } from '../output/output.js';
import { writeOwnFile } from '../output/own-file.js';
import type { ResultFormat } from '../output/result-format.js';
import { ALL } from './files.js';

/**
 * Results are written in the order of the input, so a sub-request that takes long delays all results behind it. When a
 * run is ended at once, results behind such a gap are written as well, in the order in which they finished. This is
 * given a moment only.
 */

/** How long that may take, in ms. */
const SALVAGE_MS = 1_500;

type Item = ResultItem<unknown>;

export class Salvage implements AsyncIterable<Item> {
  readonly #handle: RequestHandle;
  readonly #output: Output;
  /** Whether lines contain their index: without it, a line out of order would be taken for another result. */
  readonly #numbered: boolean;
  /** Ends the writing. */
  readonly #signal: AbortSignal;
  readonly #cut = new AbortController();
  /** The last index that was yielded in the order of the input, and the number of results up to it. */
  #last = -1;
  #inOrder = 0;
  #behind = 0;

  constructor(handle: RequestHandle, output: Output, format: ResultFormat, signal: AbortSignal) {
    this.#handle = handle;
    this.#output = output;
    this.#numbered = format !== 'text';
    this.#signal = signal;
  }

  /** All results in the order of the input; after `end`, only those that have finished by then. */
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
   * Ends the results. @returns in words which results are where
   * @param writing settles when the results are written; with an OutputError when they could not be
   */
  async end(writing: Promise<OutputError | undefined>): Promise<string> {
    this.#cut.abort();
    const late = pause(SALVAGE_MS).then(() => 'late' as const);
    const written = await Promise.race([writing.catch(() => 'late' as const), late]);
    const failed = written instanceof OutputError ? written : undefined;
    const { name } = this.#output;
    const there = failed?.written ?? this.#inOrder + this.#behind;
    const has = `${failed ? `${failed.message}; it` : name} has ${results(there)}`;
    if (written === 'late') return `${has} or fewer: there was no time to write more`;
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
    if (path === undefined || path === 'late') return `${has}; other results could not be written`;
    if (failed) return `${has}; all that finished: ${path}`;
    if (others > 0)
      return `${has}; ${number(others)} more finished behind one that had not: ${path}`;
    return `${has}: all that finished`;
  }

  /** The results behind `after` that have finished, in the order in which they did. */
  async *#finished(after: number): AsyncGenerator<Item> {
    const { counts } = await this.#handle.status();
    let left = counts.succeeded + counts.failed;
    if (left === 0) return;
    const options = {
      ...{ order: 'completion', failed: true, jsonText: true },
      signal: AbortSignal.timeout(SALVAGE_MS),
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
