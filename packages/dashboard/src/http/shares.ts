import { Refused } from '../security/refused.js';

/** Bounds how much of one thing each viewer, and all of them, have at one time: whoever takes much leaves room for others. */
export class Shares {
  readonly #each: number;
  readonly #all: number;
  readonly #taken = new Map<string, number>();
  #sum = 0;

  constructor(each: number, all = Number.POSITIVE_INFINITY) {
    this.#each = each;
    this.#all = all;
  }

  /** @param why for a viewer who has too much. @returns gives it back @throws Refused 429, 503 */
  take(viewer: string, why: string): () => void {
    const taken = this.#taken.get(viewer) ?? 0;
    if (taken >= this.#each) throw new Refused(429, why);
    if (this.#sum >= this.#all) throw new Refused(503, 'Too many visitors are here; try again.');
    this.#taken.set(viewer, taken + 1);
    this.#sum += 1;
    return () => {
      const left = (this.#taken.get(viewer) ?? 1) - 1;
      if (left > 0) this.#taken.set(viewer, left);
      else this.#taken.delete(viewer);
      this.#sum -= 1;
    };
  }
}
