import { PagedNumbers } from './paged-numbers.js';
import type { ReadEntry, ReadItem } from './read-entry.js';

/**
 * Turns outcomes that come in any order into the order of their indexes. Those that come early are
 * held as text up to a bound; of the others only the position in the results stream is kept, 8
 * bytes each, to be fetched when their turn comes. An index for which there is nothing to give is
 * passed over; one of which nothing is known holds back all later ones until the end is known.
 */

/** Counted for every text that is held, beside its length. */
const OVERHEAD = 64;
/** So many outcomes are handed over at once, at most. */
const RUN = 1_000;
/** So far ahead positions to fetch are looked for. */
const HORIZON = 8_192;
const PASS_OVER = -1;
/** Positions are kept as settled · LIVES + number of the life; exact below 2^53. */
const LIVES = 65_536;

export class ReorderBuffer {
  /** The index whose turn it is. */
  next: number;
  /** Whether an outcome was not where it had been recorded: the server lost writes. */
  lost = false;
  readonly #bufferBytes: number;
  readonly #early = new Map<number, ReadItem>();
  readonly #fetched = new Map<number, ReadItem>();
  readonly #positions = new PagedNumbers();
  readonly #lives: string[] = [];
  #held = 0;
  #end = Number.POSITIVE_INFINITY;
  #ended = false;

  constructor(next: number, bufferBytes: number) {
    this.next = next;
    this.#bufferBytes = bufferBytes;
  }

  /** Takes an outcome in; `give`: whether it is to be handed out, or its index to be passed over. */
  offer(item: ReadItem, position: string, give: boolean): void {
    const { index } = item;
    if (index < this.next) return;
    const cost = item.text.length + OVERHEAD;
    if (!give) {
      this.#positions.set(index, PASS_OVER);
    } else if (index === this.next || this.#held + cost <= this.#bufferBytes) {
      if (!this.#early.has(index)) this.#held += cost;
      this.#early.set(index, item);
    } else {
      this.#positions.set(index, this.#pack(position));
    }
  }

  /** Nothing will be offered any more; below `total` what is unknown has no outcome. */
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
        if (this.#early.delete(this.next)) this.#held -= item.text.length + OVERHEAD;
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

  /** Positions of the entries to fetch for the next ones, at most `max`; empty when none is needed. */
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

  /** Takes fetched entries in: of them what is near, the rest stays a position. */
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
      // Its error has gone since: as if it had never been recorded.
      this.#fetched.delete(next);
      this.#positions.set(next, PASS_OVER);
    } else if (!fetched && this.#positions.get(next) > 0) {
      // Its entry has: it is recorded again, or missed in the end.
      this.lost = true;
      this.#positions.set(next, 0);
    }
  }

  /** Memory beside the text that is held, in bytes. */
  get bookkeepingBytes(): number {
    return this.#positions.bytes;
  }

  /** Text that is held because it came early, in bytes, about. */
  get heldBytes(): number {
    return this.#held;
  }

  #pack(position: string): number {
    const [life = '', settled = ''] = position.split('-');
    let at = this.#lives.lastIndexOf(life);
    if (at < 0) at = this.#lives.push(life) - 1;
    return Number(settled) * LIVES + at;
  }

  #unpack(packed: number): string {
    const at = packed % LIVES;
    return `${this.#lives[at]}-${(packed - at) / LIVES}`;
  }
}
