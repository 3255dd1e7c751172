import type { Admin, RequestHandle, RequestStatus } from 'piecework';
import type { IndexState, Row } from '../shape/views.js';
import type { Privacy } from './private.js';
import { type KeptRow, keptRow } from './row.js';

/** Most requests that are kept; a queue may have more. */
const MAX_ROWS = 20_000;
/** Requests that one step of a pass reads. */
export const STEP = 300;
/** The same in the first pass, behind its first step, for which pages wait. */
const FIRST_PASS_STEP = 2_000;
/** Requests that pages show now, which one step reads again besides. */
const SHOWN_STEP = 200;
/** A request that was not shown for so long is no longer read out of turn. */
const SHOWN_FOR_MS = 3_000;

/**
 * The requests of a queue, as a list that can be searched and sorted. Redis cannot do that at a bounded cost, so it is
 * read in passes: each step goes on with the list by a bounded number of requests, and reads again those that
 * pages show now. Small queues are read anew at each step. Rows that a pass did not find are gone.
 */
export class RequestIndex {
  readonly #admin: Admin;
  readonly #request: (id: string) => RequestHandle;
  readonly #queue: string;
  readonly #privacy: Privacy;
  readonly #told: (text: string) => string;
  readonly #rows = new Map<string, KeptRow>();
  readonly #shown = new Map<string, number>();
  #iterator: AsyncGenerator<RequestStatus> | undefined;
  #pass = 1;
  #isComplete = false;
  #isTruncated = false;
  #passBegunAt = 0;
  #lastPassMs = 0;

  /** @param told removes what the page may not know */
  constructor(
    admin: Admin,
    request: (id: string) => RequestHandle,
    queue: string,
    privacy: Privacy,
    told: (text: string) => string,
  ) {
    this.#admin = admin;
    this.#request = request;
    this.#queue = queue;
    this.#privacy = privacy;
    this.#told = told;
  }

  /** All rows that are known, in no order. */
  get rows(): Iterable<KeptRow> {
    return this.#rows.values();
  }

  get state(): IndexState {
    const ageMs = Math.max(this.#lastPassMs, this.#iterator ? Date.now() - this.#passBegunAt : 0);
    return {
      rows: this.#rows.size,
      complete: this.#isComplete,
      truncated: this.#isTruncated,
      // In whole seconds, so that it is not news each second.
      ageMs: Math.round(ageMs / 1_000) * 1_000,
    };
  }

  row(id: string): Row | undefined {
    return this.#rows.get(id)?.row;
  }

  /** These are on a page now: they are read again with the next step. */
  show(ids: Iterable<string>): void {
    for (const id of ids) this.#shown.set(id, Date.now());
  }

  /** Keeps a status that was read for something else. */
  keep(status: RequestStatus): Row {
    const before = this.#rows.get(status.id);
    const kept = keptRow(status, this.#queue, this.#privacy, this.#told, this.#pass, before);
    if (before || this.#rows.size < MAX_ROWS) this.#rows.set(status.id, kept);
    return kept.row;
  }

  /** One step: a bounded number of reads. */
  async step(): Promise<void> {
    const budget = this.#isComplete || this.#rows.size === 0 ? STEP : FIRST_PASS_STEP;
    if (!this.#iterator) {
      this.#pass += 1;
      this.#passBegunAt = Date.now();
      this.#iterator = this.#admin.list({ state: 'all' });
    }
    try {
      for (let read = 0; read < budget; read++) {
        const next = await this.#iterator.next();
        if (next.done) {
          this.#endPass(false);
          break;
        }
        this.keep(next.value);
        if (this.#rows.size < MAX_ROWS || this.#rows.has(next.value.id)) continue;
        this.#endPass(true);
        break;
      }
    } catch (error) {
      this.#iterator = undefined;
      throw error;
    }
    await this.#readShown();
  }

  #endPass(isTruncated: boolean): void {
    this.#iterator = undefined;
    this.#isTruncated = isTruncated;
    this.#isComplete = true;
    this.#lastPassMs = Date.now() - this.#passBegunAt;
    for (const [id, { pass }] of this.#rows) if (pass < this.#pass) this.#rows.delete(id);
  }

  async #readShown(): Promise<void> {
    const now = Date.now();
    const due: string[] = [];
    for (const [id, at] of this.#shown) {
      if (now - at > SHOWN_FOR_MS) this.#shown.delete(id);
      else if (now - (this.#rows.get(id)?.readAt ?? 0) >= 700) due.push(id);
    }
    // Those that were read longest ago, if there are too many.
    due.sort((a, b) => (this.#rows.get(a)?.readAt ?? 0) - (this.#rows.get(b)?.readAt ?? 0));
    await Promise.all(due.slice(0, SHOWN_STEP).map((id) => this.#readOne(id)));
  }

  async #readOne(id: string): Promise<void> {
    try {
      this.keep(await this.#request(id).status());
    } catch (error) {
      if (!isGone(error)) throw error;
      this.#rows.delete(id);
      this.#shown.delete(id);
    }
  }

  /** Nobody looks any more: frees the memory. */
  clear(): void {
    void this.#iterator?.return(undefined).catch(() => {});
    this.#iterator = undefined;
    this.#rows.clear();
    this.#shown.clear();
    this.#isComplete = false;
    this.#isTruncated = false;
  }
}

/** Whether the request of this error does not exist any more. */
export function isGone(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return ['NOT_FOUND', 'EXPIRED', 'DROPPED', 'LOST'].includes(String(code));
}
