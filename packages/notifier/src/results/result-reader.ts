import {
  backoff,
  pause,
  type RequestReads,
  type ResultRecord,
  ResultsDiscardedError,
  ResultsLostError,
} from '@piecework/protocol';
import { persist } from '../waiting/persist.js';
import type { Subscription } from '../waiting/subscription.js';
import type { WaitScope } from '../waiting/wait-scope.js';
import type { Following } from './following.js';
import type { ReadEntry, ReadItem } from './read-entry.js';
import type { SeenOutcomes } from './seen-outcomes.js';

/** About how many characters one read should bring. */
const PAGE_CHARS = 1_000_000;
const PAGE_ENTRIES = 1_000;
/** A read that brings fewer characters than this stopped because there are no more entries, and not at its bytes. */
const SURELY_SHORT_CHARS = 250_000;
/** Entries of the first read, when their size is not known. */
const FIRST_PAGE = 32;
const ERRORS_PER_READ = 500;

/**
 * Reads the results stream of one request (docs/decisions/0001-results-layout.md), in pages of bounded size, and
 * follows the stream while the request runs.
 */
export class ResultReader {
  readonly #request: RequestReads;
  readonly #subscription: Subscription;
  readonly #scope: WaitScope;
  readonly #failed: boolean;
  readonly #following: Following | undefined;
  readonly #wait: boolean;
  #charsPerEntry = PAGE_CHARS / FIRST_PAGE;
  /** Whether the results that a message brought were used. */
  #hasUsedBrought = false;

  /**
   * `failed`: whether the errors of failed sub-requests are wanted · `following`: if each result is wanted at once ·
   * `wait`: whether to wait for entries that are not there yet
   */
  constructor(
    request: RequestReads,
    subscription: Subscription,
    scope: WaitScope,
    failed: boolean,
    following?: Following,
    wait = true,
  ) {
    this.#request = request;
    this.#subscription = subscription;
    this.#scope = scope;
    this.#failed = failed;
    this.#following = following;
    this.#wait = wait;
  }

  /** How many sub-requests there are; read it only after `pages` has ended. */
  get total(): number {
    return this.#subscription.complete?.total ?? 0;
  }

  /**
   * All entries from `from` on ('-': from the first), page by page; ends when all entries were read and, with `wait`,
   * the request is complete.
   * @throws ResultsDiscardedError when only values are wanted, and none are kept · ResultsLostError when there is
   *   no entry at `from` · NotFoundError · ExpiredError · DroppedError · AbortError · TimeoutError · ServerError
   */
  async *pages(from: string): AsyncGenerator<ReadEntry[]> {
    await this.#scope.race(this.#subscription.firstRead);
    const brought = this.#brought();
    // A cursor needs the stream: it names a record that may be gone.
    if (from === '-' && brought) {
      yield brought;
      return;
    }
    const idle = backoff(20, 500);
    let next = from;
    // Failures are always kept.
    let kept = this.#failed;
    for (;;) {
      this.#subscription.throwIfAbsent();
      // Read before the page: a page that is read after the completion has everything recorded before it.
      const { complete } = this.#subscription;
      // 0 until the first read of the state. Of a complete request the page shows it, if it has any success.
      if (!kept && !complete && this.#subscription.generation > 0) {
        await this.#expectKept();
        kept = true;
      }
      const end = complete ? String(complete.generation) : '+';
      const count = this.entriesFor(PAGE_CHARS);
      const { entries: page, chars, asked } = await this.#read(next, count, end);
      kept ||= page.some(({ items }) => items.some(({ kind }) => kind === 'succeeded'));
      if (!kept && complete) {
        await this.#expectKept();
        kept = true;
      }
      const last = page.at(-1);
      // The entry of the cursor existed before: the stream has gone back to before it.
      // cure: a cursor whose record is lost is refused
      if (next === from && from !== '-' && page[0]?.position !== from) await this.throwLost();
      if (last) {
        idle.reset();
        next = `(${last.position}`;
        yield page;
        // cure: a page of long results that is full is not the last
        if (complete && page.length < asked && chars < SURELY_SHORT_CHARS) return;
      } else if (complete) {
        return this.throwIfGone();
      } else if (!this.#wait) {
        return;
      } else {
        this.#following?.note(this.#subscription.generation);
        const wakes = [this.#subscription.endSignal, this.#scope.signal];
        await this.#scope.race(pause(idle.next(), ...wakes));
      }
    }
  }

  /** All entries, if the message of the completion brought them; for one pass. */
  #brought(): ReadEntry[] | undefined {
    const { results } = this.#subscription;
    // cure: a second pass reads the stream
    if (!results || this.#hasUsedBrought) return undefined;
    this.#hasUsedBrought = true;
    return results.map(({ position, records }) => ({
      position,
      items: records.map((record) => itemOf(record, NO_ERRORS)),
    }));
  }

  /**
   * How many outcomes of the complete request are not in `seen`. An outcome is recorded and counted in one step, so
   * a missing one means that the server lost writes, and that it is now recorded before what was read last.
   */
  async missing(seen: SeenOutcomes): Promise<number> {
    const { complete } = this.#subscription;
    const failed = this.#failed ? Math.max(0, (complete?.failed ?? 0) - seen.failed) : 0;
    const succeeded = Math.max(0, (complete?.succeeded ?? 0) - seen.succeeded);
    if (succeeded === 0) return failed;
    const { results } = await persist(this.#scope, () => this.#request.fields('results'));
    return results === 'keep' ? failed + succeeded : failed;
  }

  /** @throws ResultsDiscardedError */
  async #expectKept(): Promise<void> {
    const { results } = await persist(this.#scope, () => this.#request.fields('results'));
    if (results === 'discard') throw new ResultsDiscardedError(this.#request.keys.id);
  }

  /**
   * @param missing how many results are missing; 0: unknown
   * @throws ResultsLostError · ExpiredError, DroppedError when the whole request is gone
   */
  async throwLost(missing = 0): Promise<never> {
    await this.throwIfGone();
    throw new ResultsLostError(this.#request.keys.id, missing);
  }

  /**
   * `takenBack`: how many failures were found taken back, without a later outcome. A redrive after the end that the
   * reader awaited has done that; their new outcomes are of a generation that it does not read.
   * @throws ResultsLostError · ExpiredError, LostError, DroppedError when the whole request is gone
   */
  async throwIfRedriven(takenBack: number): Promise<void> {
    if (takenBack === 0 || !this.#failed) return;
    await this.throwIfGone();
    const { generation } = await persist(this.#scope, () => this.#request.fields('generation'));
    const { id } = this.#request.keys;
    // cure: failures that a redrive took back are missing
    if (Number(generation) > (this.#subscription.complete?.generation ?? 0))
      throw new ResultsLostError(id, takenBack, 'it was redriven while they were read');
  }

  /** These entries, in one round trip; one that no longer exists is left out. */
  async fetch(positions: readonly string[]): Promise<ReadEntry[]> {
    const pages = positions.map((position) => this.#read(position, 1, position));
    return (await Promise.all(pages)).flatMap(({ entries }) => entries);
  }

  /** About how many entries have `chars` characters, estimated from the entries read so far. */
  entriesFor(chars: number): number {
    return Math.max(1, Math.min(PAGE_ENTRIES, Math.floor(chars / this.#charsPerEntry)));
  }

  /** An empty page is the end only if the results still exist. @throws ExpiredError · LostError · DroppedError */
  async throwIfGone(): Promise<void> {
    await persist(this.#scope, () => this.#subscription.expectThere());
  }

  async #read(
    from: string,
    count: number,
    to: string,
  ): Promise<{
    readonly entries: ReadEntry[];
    readonly chars: number;
    readonly asked: number;
  }> {
    const page = await persist(this.#scope, () =>
      this.#request.resultsPage(this.#subscription.generation, from, count, to),
    );
    if (page === 'gone') return this.throwLost();
    const { entries: rows, asked } = page;
    for (const { position } of rows.slice(-1)) this.#subscription.learn(generationOf(position));
    const wanted = rows.flatMap(({ position, records }) => {
      const generation = generationOf(position);
      const stale = generation < this.#subscription.generation;
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
    return { entries, chars, asked };
  }

  /** Errors of these records; null where a redrive took the failure back, even if it failed again since. */
  async #errorsOf(
    records: readonly { record: ResultRecord; generation: number }[],
  ): Promise<Map<ResultRecord, string | null>> {
    const errors = new Map<ResultRecord, string | null>();
    for (let i = 0; i < records.length; i += ERRORS_PER_READ) {
      const some = records.slice(i, i + ERRORS_PER_READ);
      const indexes = some.map(({ record }) => record.index);
      const generations = some.map(({ generation }) => generation);
      const found = await persist(this.#scope, () => this.#request.failures(indexes, generations));
      for (const [n, { record }] of some.entries()) errors.set(record, found[n] ?? null);
    }
    return errors;
  }
}

const generationOf = (position: string) => Number.parseInt(position, 10);

const NO_ERRORS: Map<ResultRecord, string | null> = new Map();

function itemOf(record: ResultRecord, errors: Map<ResultRecord, string | null>): ReadItem {
  const { index, failed, value } = record;
  if (!failed) return { index, kind: 'succeeded', text: value };
  const error = errors.get(record);
  if (error === null) return { index, kind: 'redriven', text: '' };
  return { index, kind: 'failed', text: error ?? '' };
}
