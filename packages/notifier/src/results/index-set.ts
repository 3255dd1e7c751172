/** Bits of a page. */
const PAGE = 32_768;

/** A set of indexes of sub-requests, one bit each, in pages that are made when they are needed. */
export class IndexSet {
  readonly #pages = new Map<number, Uint32Array>();
  #size = 0;

  /** How many indexes are in the set. */
  get size(): number {
    return this.#size;
  }

  /** @returns whether the index is new */
  add(index: number): boolean {
    const at = Math.floor(index / PAGE);
    let page = this.#pages.get(at);
    if (!page) {
      page = new Uint32Array(PAGE / 32);
      this.#pages.set(at, page);
    }
    const place = index % PAGE;
    const bit = 1 << (place % 32);
    const word = page[place >> 5] as number;
    page[place >> 5] = word | bit;
    if ((word & bit) !== 0) return false;
    this.#size += 1;
    return true;
  }

  has(index: number): boolean {
    const page = this.#pages.get(Math.floor(index / PAGE));
    const place = index % PAGE;
    return page !== undefined && ((page[place >> 5] as number) & (1 << (place % 32))) !== 0;
  }

  *ascending(): Generator<number> {
    for (const at of [...this.#pages.keys()].sort((a, b) => a - b)) {
      const page = this.#pages.get(at) as Uint32Array;
      for (const [n, word] of page.entries()) {
        for (let bit = 0; word !== 0 && bit < 32; bit += 1) {
          if (word & (1 << bit)) yield at * PAGE + n * 32 + bit;
        }
      }
    }
  }

  /** Memory used, in bytes. */
  get bytes(): number {
    return (this.#pages.size * PAGE) / 8;
  }
}
