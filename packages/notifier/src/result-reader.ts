import {
  backoff,
  pause,
  type RequestCommands,
  type ResultRecord,
  ResultsDiscardedError,
  ResultsLostError,
} from '@piecework/protocol';
import { persist } from './persist.js';
import type { ReadEntry, ReadItem } from './read-entry.js';
import type { SeenOutcomes } from './seen-outcomes.js';
import type { Stay } from './stay.js';
import type { Ticket } from './ticket.js';

/** Characters that one read is to bring, about. */
const PAGE_CHARS = 1_000_000;
const PAGE_ENTRIES = 1_000;
/** So many entries are read at first, when their size is not known. */
const FIRST_PAGE = 32;
const ERRORS_PER_READ = 500;

/**
 * Reads the results stream of one request (docs/decisions/0001-results-layout.md), in pages that are
 * bounded by their text, following it while the request runs.
 */
export class ResultReader {
  readonly #request: RequestCommands;
  readonly #ticket: Ticket;
  readonly #stay: Stay;
  readonly #failed: boolean;
  #charsPerEntry = PAGE_CHARS / FIRST_PAGE;

  /** `failed`: whether the errors of failed sub-requests are wanted. */
  constructor(request: RequestCommands, ticket: Ticket, stay: Stay, failed: boolean) {
    this.#request = request;
    this.#ticket = ticket;
    this.#stay = stay;
    this.#failed = failed;
  }

  /** How many sub-requests there are; only to be asked when the pages have ended. */
  get total(): number {
    return this.#ticket.complete?.total ?? 0;
  }

  /**
   * All entries from `from` on ('-': from the first), page by page; ends when the request is
   * complete and all of it was read.
   * @throws ResultsDiscardedError when only values are wanted, and none are kept · ResultsLostError when there is no entry at `from` · NotFoundError · ExpiredError · DroppedError · AbortError · TimeoutError · ServerError
   */
  async *pages(from: string): AsyncGenerator<ReadEntry[]> {
    await this.#stay.race(this.#ticket.looked);
    const wakes = [this.#ticket.over, this.#stay.signal];
    const idle = backoff(20, 500);
    let next = from;
    // Failures are kept always.
    let kept = this.#failed;
    for (;;) {
      this.#ticket.throwIfAbsent();
      // Known from the first look at the request on.
      if (!kept && this.#ticket.generation > 0) {
        await this.#expectKept();
        kept = true;
      }
      // Read before the page: what is recorded before completion is in a page read after it.
      const { complete } = this.#ticket;
      const end = complete ? String(complete.generation) : '+';
      const page = await this.#read(next, this.entriesFor(PAGE_CHARS), end);
      const last = page.at(-1);
      // The entry of a cursor was there: the stream has gone back behind it.
      if (next === from && from !== '-' && page[0]?.position !== from) await this.throwLost();
      if (last) {
        idle.reset();
        next = `(${last.position}`;
        yield page;
      } else if (complete) {
        return this.throwIfGone();
      } else {
        await this.#stay.race(pause(idle.next(), ...wakes));
      }
    }
  }

  /**
   * How many outcomes of the complete request are not among these. Records go with their counts, so that any
   * are missing means that the server lost writes: some came to be before what was read last.
   */
  async missing(seen: SeenOutcomes): Promise<number> {
    const { complete } = this.#ticket;
    const failed = this.#failed ? Math.max(0, (complete?.failed ?? 0) - seen.failed) : 0;
    const succeeded = Math.max(0, (complete?.succeeded ?? 0) - seen.succeeded);
    if (succeeded === 0) return failed;
    const { results } = await persist(this.#stay, () => this.#request.fields('results'));
    return results === 'keep' ? failed + succeeded : failed;
  }

  /** @throws ResultsDiscardedError */
  async #expectKept(): Promise<void> {
    const { results } = await persist(this.#stay, () => this.#request.fields('results'));
    if (results === 'discard') throw new ResultsDiscardedError(this.#request.keys.id);
  }

  /** `missing`: how many, 0 when that is not known. @throws ResultsLostError · ExpiredError, DroppedError when it is all gone */
  async throwLost(missing = 0): Promise<never> {
    await this.throwIfGone();
    throw new ResultsLostError(this.#request.keys.id, missing);
  }

  /** These entries, in one round trip; one that is not there any more is left out. */
  async fetch(positions: readonly string[]): Promise<ReadEntry[]> {
    const pages = positions.map((position) => this.#read(position, 1, position));
    return (await Promise.all(pages)).flat();
  }

  /** How many entries have about so many characters, from what was read so far. */
  entriesFor(chars: number): number {
    return Math.max(1, Math.min(PAGE_ENTRIES, Math.floor(chars / this.#charsPerEntry)));
  }

  /** An empty answer is an end only if the results are still there. @throws ExpiredError · LostError · DroppedError */
  async throwIfGone(): Promise<void> {
    await persist(this.#stay, () => this.#ticket.expectThere());
  }

  async #read(from: string, count: number, to: string): Promise<ReadEntry[]> {
    const rows = await persist(this.#stay, () => this.#request.results(from, count, to));
    const wanted = rows.flatMap(({ position, records }) => {
      const generation = Number.parseInt(position, 10);
      const stale = generation < this.#ticket.generation;
      return records
        .filter(({ failed }) => failed && (this.#failed || stale))
        .map((record) => ({ record, generation }));
    });
    const errors = await this.#errorsOf(wanted);
    let chars = 0;
    const entries = rows.map(({ position, records }) => {
      const items = records.map((record) => itemOf(record, errors));
      for (const { text } of items) chars += text.length + 32;
      return { position, items };
    });
    if (rows.length > 0) this.#charsPerEntry = (this.#charsPerEntry + chars / rows.length) / 2;
    return entries;
  }

  /** Errors of these records; null where the failure was taken back, perhaps for another one. */
  async #errorsOf(
    records: readonly { record: ResultRecord; generation: number }[],
  ): Promise<Map<ResultRecord, string | null>> {
    const errors = new Map<ResultRecord, string | null>();
    for (let i = 0; i < records.length; i += ERRORS_PER_READ) {
      const some = records.slice(i, i + ERRORS_PER_READ);
      const indexes = some.map(({ record }) => record.index);
      const lives = some.map(({ generation }) => generation);
      const found = await persist(this.#stay, () => this.#request.failures(indexes, lives));
      for (const [n, { record }] of some.entries()) errors.set(record, found[n] ?? null);
    }
    return errors;
  }
}

function itemOf(record: ResultRecord, errors: Map<ResultRecord, string | null>): ReadItem {
  const { index, failed, value } = record;
  if (!failed) return { index, kind: 'succeeded', text: value };
  const error = errors.get(record);
  if (error === null) return { index, kind: 'redriven', text: '' };
  return { index, kind: 'failed', text: error ?? '' };
}
