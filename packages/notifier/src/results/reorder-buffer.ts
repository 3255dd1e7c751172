import { PagedNumbers } from './paged-numbers.js';
import type { ReadEntry, ReadItem } from './read-entry.js';

/**
 * Brings outcomes that arrive in any order into the order of their indexes. The text of outcomes that arrive early
 * is kept up to a bound; of the others only the position in the results stream is kept, 8 bytes each, to be
 * fetched when their turn comes. An index that has nothing to yield is skipped. An index of unknown outcome blocks
 * all later ones until the request is complete.
 */

/** Bytes counted for every buffered text, besides its length. */
const OVERHEAD = 64;
/** The most outcomes that `take` returns. */
const RUN = 1_000;
/** How many indexes ahead positions to fetch are searched. */
const HORIZON = 8_192;
const SKIP = -1;
/** A position is kept as settled · GENERATIONS + number of the generation; exact below 2^53. */
const GENERATIONS = 65_536;

export class ReorderBuffer {
  /** The index whose turn it is. */
  next: number;
  /** Whether an outcome was not at its recorded position: the server lost writes. */
  lost = false;
  /** How many failures a redrive had taken back when they were fetched. */
  takenBack = 0;
  readonly #bufferBytes: number;
  readonly #early = new Map<number, ReadItem>();
  readonly #fetched = new Map<number, ReadItem>();
  readonly #positions = new PagedNumbers();
  readonly #generations: string[] = [];
  #bufferedBytes = 0;
  #end = Number.POSITIVE_INFINITY;
  #ended = false;

  constructor(next: number, bufferBytes: number) {
    this.next = next;
    this.#bufferBytes = bufferBytes;
  }

  /** Takes an outcome in; `give`: whether to yield it, or else to skip its index. */
  offer(item: ReadItem, position: string, give: boolean): void {
    const { index } = item;
    if (index < this.next) return;
    const cost = item.text.length + OVERHEAD;
    if (!give) {
      this.#positions.set(index, SKIP);
    } else if (index === this.next || this.#bufferedBytes + cost <= this.#bufferBytes) {
      if (!this.#early.has(index)) this.#bufferedBytes += cost;
      this.#early.set(index, item);
    } else {
      this.#positions.set(index, this.#pack(position));
    }
  }

  /** No more outcomes will be offered; an index below `total` that is still unknown has none. */
  end(total: number): void {
    this.#end = total;
    this.#ended = true;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Outcomes whose turn it is, some at a time. Empty: see `missing`. */
  take(): ReadItem[] {
    const run: ReadItem[] = [];
    while (run.length < RUN && this.next < this.#end) {
      const item = this.#early.get(this.next) ?? this.#fetched.get(this.next);
      if (item) {
        if (this.#early.delete(this.next)) this.#bufferedBytes -= item.text.length + OVERHEAD;
        else this.#fetched.delete(this.next);
        run.push(item);
        this.next += 1;
        continue;
      }
      const known = this.#positions.get(this.next);
      if (known > 0 || (known === 0 && !this.#ended)) break;
      const empty = known === 0 && this.#early.size === 0 && this.#fetched.size === 0;
      this.next = empty ? this.#positions.after(this.next) : this.next + 1;
    }
    this.#positions.forgetBelow(this.next);
    return run;
  }

  /** Positions of the entries to fetch for the next outcomes, at most `max`; empty when none is needed. */
  missing(max: number): string[] {
    const positions = new Set<number>();
    const until = Math.min(this.next + HORIZON, this.#end);
    for (let index = this.next; index < until; index += 1) {
      const known = this.#positions.get(index);
      if (known > 0 && !this.#early.has(index) && !this.#fetched.has(index)) {
        if (positions.size === max && !positions.has(known)) break;
        positions.add(known);
      } else if (known === 0 && !this.#ended && !this.#early.has(index)) {
        break;
      }
    }
    return [...positions].map((packed) => this.#unpack(packed));
  }

  /** Takes the near outcomes of fetched entries in; of the others only the position is kept, as before. */
  refill(entries: readonly ReadEntry[]): void {
    for (const { position, items } of entries) {
      const packed = this.#pack(position);
      for (const item of items) {
        const near = item.index >= this.next && item.index < this.next + HORIZON;
        if (near && this.#positions.get(item.index) === packed) this.#fetched.set(item.index, item);
      }
    }
    const { next } = this;
    const fetched = this.#fetched.get(next);
    if (fetched?.kind === 'redriven') {
      // Its failure was taken back since: as if it had never been recorded.
      this.#fetched.delete(next);
      this.#positions.set(next, 0);
      this.takenBack += 1;
    } else if (!fetched && this.#positions.get(next) > 0) {
      // Its entry has gone: it is recorded again, or reported as missing at the end.
      this.lost = true;
      this.#positions.set(next, /* cure: a result that left its position is awaited */ 0);
    }
  }

  /** Memory besides the buffered text, in bytes. */
  get bookkeepingBytes(): number {
    return this.#positions.bytes;
  }

  /** About how much text is buffered because it came early, in bytes. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  #pack(position: string): number {
    const [generation = '', settled = ''] = position.split('-');
    let at = this.#generations.lastIndexOf(generation);
    if (at < 0) at = this.#generations.push(generation) - 1;
    return Number(settled) * GENERATIONS + at;
  }

  #unpack(packed: number): string {
    const at = packed % GENERATIONS;
    return `${this.#generations[at]}-${(packed - at) / GENERATIONS}`;
  }
}
