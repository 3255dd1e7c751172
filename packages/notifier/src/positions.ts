/**
 * Where in the results stream the result of an index is: 8 bytes for each, in pages that are made
 * when first needed and freed once they are passed.
 */
const PAGE = 1_024;

export class Positions {
  readonly #pages = new Map<number, Float64Array>();
  readonly #generations: string[] = [];

  /** Bytes held now. */
  get bytes(): number {
    return this.#pages.size * PAGE * Float64Array.BYTES_PER_ELEMENT;
  }

  set(index: number, position: string): void {
    const [generation = '', settled = ''] = position.split('-');
    let life = this.#generations.indexOf(generation);
    if (life === -1) life = this.#generations.push(generation) - 1;
    const page = Math.floor(index / PAGE);
    let slots = this.#pages.get(page);
    if (!slots) {
      slots = new Float64Array(PAGE);
      this.#pages.set(page, slots);
    }
    // A settled count is at least 1, so 0 stays free for "nothing here".
    slots[index % PAGE] = life * 2 ** 40 + Number(settled);
  }

  get(index: number): string | undefined {
    const packed = this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
    if (!packed) return undefined;
    return `${this.#generations[Math.floor(packed / 2 ** 40)]}-${packed % 2 ** 40}`;
  }

  /** Forgets everything before `index`. */
  passed(index: number): void {
    const page = Math.floor(index / PAGE) - 1;
    if (index % PAGE === 0) this.#pages.delete(page);
  }

  /** The first index from `index` on that has a position, or undefined. */
  nextFrom(index: number): number | undefined {
    const pages = [...this.#pages.keys()].sort((a, b) => a - b);
    for (const page of pages) {
      const slots = this.#pages.get(page)!;
      for (let i = Math.max(0, index - page * PAGE); i < PAGE; i += 1) {
        if (slots[i]) return page * PAGE + i;
      }
    }
    return undefined;
  }
}
