/**
 * Numbers by a rising index, 8 bytes each, in pages that are made when they are needed and freed when the reader
 * has passed them. 0 means: no number.
 */
const PAGE = 1_024;

export class PagedNumbers {
  readonly #pages = new Map<number, Float64Array>();
  #first = 0;

  get(index: number): number {
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE] ?? 0;
  }

  set(index: number, value: number): void {
    const at = Math.floor(index / PAGE);
    let page = this.#pages.get(at);
    if (!page) {
      page = new Float64Array(PAGE);
      this.#pages.set(at, page);
    }
    page[index % PAGE] = value;
  }

  /** The next index that may have a number when `index` has none: behind its page, if the page is missing. */
  after(index: number): number {
    const at = Math.floor(index / PAGE);
    return this.#pages.has(at) ? index + 1 : (at + 1) * PAGE;
  }

  /** Frees the pages below `index`, which only rises. */
  forgetBelow(index: number): void {
    const first = Math.floor(index / PAGE);
    for (; this.#first < first; this.#first += 1) this.#pages.delete(this.#first);
  }

  /** Memory used, in bytes. */
  get bytes(): number {
    return this.#pages.size * PAGE * Float64Array.BYTES_PER_ELEMENT;
  }
}
