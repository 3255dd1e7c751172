import { medianOf } from '@piecework/protocol';

/** So many of the last successes say what is usual. */
const LATELY = 31;

/** How long handlers of a request usually run on this worker, by its last successes. */
export class Usual {
  readonly #lately: number[] = [];
  #next = 0;

  note(ms: number): void {
    this.#lately[this.#next] = ms;
    this.#next = (this.#next + 1) % LATELY;
  }

  /** In ms; undefined: nothing succeeded here. */
  get medianMs(): number | undefined {
    return medianOf(this.#lately);
  }
}
