/**
 * Memory that the main thread and the renewal thread share, so that neither wakes the other and no message is
 * needed, whatever the rate of sub-requests.
 *
 *   head  beat        when the main loop last ran                   written by main
 *   row   generation  of the request in this row, 0: free           written by main, last
 *         asked       when the last granted renewal was sent        written by the thread
 *         length      of the id                                     written by main
 *         ends        when the time of the last attempt that was    written by main
 *                     started is up, 0: never
 *         id                                                        written by main
 *
 * Times are process.hrtime in ns: one monotonic clock for all threads of a process. A row is reused. A renewal for
 * its previous request has an earlier time than the moment at which the present one got the row, and is ignored.
 * The thread therefore reads the clock before it reads the row.
 */

/** Longest id of a request (see NAME in protocol/options.ts). */
const ID_BYTES = 128;
const HEAD_BYTES = 8;
const ROW_BYTES = 8 + 8 + 8 + 8 + ID_BYTES;

export interface OccupiedRow {
  readonly row: number;
  readonly id: string;
  readonly generation: number;
  /** When the time of the last attempt that was started is up; 0: never. */
  readonly ends: bigint;
}

export class RenewalTable {
  readonly memory: SharedArrayBuffer;
  readonly rows: number;
  readonly #words: BigInt64Array;
  readonly #bytes: Buffer;

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.rows = (memory.byteLength - HEAD_BYTES) / ROW_BYTES;
    this.#words = new BigInt64Array(memory);
    this.#bytes = Buffer.from(memory);
  }

  static of(rows: number): RenewalTable {
    return new RenewalTable(new SharedArrayBuffer(HEAD_BYTES + rows * ROW_BYTES));
  }

  beat(): void {
    Atomics.store(this.#words, 0, process.hrtime.bigint());
  }

  get beatAt(): bigint {
    return Atomics.load(this.#words, 0);
  }

  occupy(row: number, id: string, generation: number): void {
    const at = this.#at(row);
    Atomics.store(this.#words, at + 1, 0n);
    // An id is ASCII.
    Atomics.store(this.#words, at + 2, BigInt(id.length));
    Atomics.store(this.#words, at + 3, 0n);
    this.#bytes.write(id, 8 * (at + 4), 'latin1');
    Atomics.store(this.#words, at, BigInt(generation));
  }

  release(row: number): void {
    Atomics.store(this.#words, this.#at(row), 0n);
  }

  occupied(): OccupiedRow[] {
    const found: OccupiedRow[] = [];
    for (let row = 0; row < this.rows; row += 1) {
      const at = this.#at(row);
      const generation = Atomics.load(this.#words, at);
      if (generation === 0n) continue;
      const length = Number(Atomics.load(this.#words, at + 2));
      const ends = Atomics.load(this.#words, at + 3);
      const id = this.#bytes.toString('latin1', 8 * (at + 4), 8 * (at + 4) + length);
      // It changed while it was read: the main loop runs again, and renews by itself.
      if (Atomics.load(this.#words, at) !== generation) continue;
      found.push({ row, id, generation: Number(generation), ends });
    }
    return found;
  }

  /** An attempt was started whose time is up at `ends`, later than those before. */
  bound(row: number, ends: bigint): void {
    Atomics.store(this.#words, this.#at(row) + 3, ends);
  }

  renewed(row: number, asked: bigint): void {
    Atomics.store(this.#words, this.#at(row) + 1, asked);
  }

  /** When the last granted renewal of this row was sent; 0: never. */
  askedAt(row: number): bigint {
    return Atomics.load(this.#words, this.#at(row) + 1);
  }

  /** Index of the row's first word. */
  #at(row: number): number {
    return (HEAD_BYTES + row * ROW_BYTES) / 8;
  }
}
