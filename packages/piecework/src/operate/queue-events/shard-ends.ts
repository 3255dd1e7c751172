import { type QueueEnd, type QueueReads, TIMES } from '@piecework/protocol';

const PAGE = 500;
/** The queue keeps at least so many ends of a week. */
const KEPT = 1_000;

/** What one read of the ends found. */
interface Found {
  /** Those that no other end can still come before. */
  readonly ends: readonly QueueEnd[];
  /** Whether others were found, which the next read will answer. */
  readonly more: boolean;
  /** Set when ends between the position and this time may have been forgotten. */
  readonly missedBefore: number | undefined;
}

/**
 * The ends in one shard of a queue, from a position on. The queue notes an end under the millisecond in which it was
 * noted; of several in one millisecond, the one with the lower id comes first. So an end may still come before those of
 * the latest millisecond, and these are answered by the next read. A clock that is set back hides ends until it is
 * where it was.
 */
export class ShardEnds {
  readonly #queue: QueueReads;
  #position: QueueEnd | undefined;
  /** The latest end that an earlier read found. */
  #latest = 0;

  /** `position`: the last end that was processed; undefined: the last that there is at the first read. */
  constructor(queue: QueueReads, position: QueueEnd | undefined) {
    this.#queue = queue;
    this.#position = position;
  }

  get position(): QueueEnd {
    return this.#position ?? { id: '', at: 0 };
  }

  /** The consumer has processed this end. */
  processed(end: QueueEnd): void {
    this.#position = end;
  }

  /** Without a position, begins with what ends from now on. */
  async begin(): Promise<void> {
    this.#position ??= (await this.#queue.lastEnd()) ?? { id: '', at: 0 };
  }

  async read(): Promise<Found> {
    const { at, id } = this.position;
    const found: QueueEnd[] = [];
    let first: number | undefined;
    for (let offset = 0; ; offset += PAGE) {
      const { ends, oldest } = await this.#queue.endedSince(at, offset, PAGE);
      first ??= oldest;
      found.push(...ends.filter((end) => end.at > at || end.id > id));
      if (ends.length < PAGE) break;
    }
    const latest = found.at(-1)?.at ?? 0;
    const known = this.#latest;
    this.#latest = latest;
    // Others may still be noted in the latest millisecond, unless it was over at the last read already.
    const ends = found.filter((end) => end.at < latest || end.at <= known);
    const forgot = at > 0 && first !== undefined && first > at;
    const isGap = forgot && (found.length >= KEPT || latest - at > TIMES.historyMs);
    const missedBefore = isGap ? first : undefined;
    return { ends, more: ends.length < found.length, missedBefore };
  }
}
