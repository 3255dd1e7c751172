import type { Connection } from '../../redis/connection.js';
import type { ResultsEntry } from './outcome-codec.js';
import type { RequestState } from './request-reads.js';

/** How a request ended. */
export interface RecentEnd {
  readonly state: RequestState;
  /** All its results, if the message of its completion brought them. */
  readonly results?: readonly ResultsEntry[] | undefined;
}

/** How long an end is kept, in ms. */
const FRESH_MS = 2_000;
/** The most that are kept. */
const MOST = 1_000;

interface Kept {
  /** Undefined: this process has dropped or redriven the request since. */
  readonly end: RecentEnd | undefined;
  readonly atMs: number;
  /** Whether a caller has awaited it. */
  claimed: boolean;
}

/**
 * The ends of requests that this process has learnt of within the last seconds, so that a caller who has just seen a
 * completion reads its results without asking for the state again, or at all. What this process itself does to a request
 * makes it forget its end.
 */
export class RecentEnds {
  readonly #kept = new Map<string, Kept>();
  /** When the latest of those that were given up before their time was noted. */
  #givenUpMs = 0;

  note(id: string, end: RecentEnd, claimed: boolean, nowMs = performance.now()): void {
    const known = this.#get(id, nowMs);
    // A message that was under way when the request was dropped.
    // cure: an end that this process undid is not believed again
    if (known && !known.end) return;
    this.#keep(id, { end, atMs: nowMs, claimed: claimed || known?.claimed === true });
  }

  /** This process changes the request. */
  forget(id: string, nowMs = performance.now()): void {
    this.#keep(id, { end: undefined, atMs: nowMs, claimed: true });
  }

  find(id: string, nowMs = performance.now()): RecentEnd | undefined {
    return this.#get(id, nowMs)?.end;
  }

  /** The end, for the first caller that asks. */
  claim(id: string, nowMs = performance.now()): RecentEnd | undefined {
    const kept = this.#get(id, nowMs);
    // cure: a caller that awaits a completion again reads the state
    if (!kept || kept.claimed) return undefined;
    kept.claimed = true;
    return kept.end;
  }

  /** Whether every end of this id that was noted since then is still here, and none was. */
  noneSince(id: string, sinceMs: number, nowMs = performance.now()): boolean {
    const isWhole = sinceMs > this.#givenUpMs && nowMs - sinceMs < FRESH_MS;
    return isWhole && !this.#kept.has(id);
  }

  #get(id: string, nowMs: number): Kept | undefined {
    const kept = this.#kept.get(id);
    if (!kept || nowMs - kept.atMs < FRESH_MS) return kept;
    this.#kept.delete(id);
    return undefined;
  }

  #keep(id: string, kept: Kept): void {
    this.#kept.delete(id);
    this.#kept.set(id, kept);
    for (const [oldest, { atMs }] of this.#kept) {
      const isOld = kept.atMs - atMs >= FRESH_MS;
      if (!isOld && this.#kept.size <= MOST) return;
      if (!isOld) this.#givenUpMs = atMs;
      this.#kept.delete(oldest);
    }
  }
}

const endsOf = new WeakMap<Connection, RecentEnds>();

/** What all who share a connection know of recent ends. */
export function recentEnds(connection: Connection): RecentEnds {
  let ends = endsOf.get(connection);
  if (!ends) {
    ends = new RecentEnds();
    endsOf.set(connection, ends);
  }
  return ends;
}
