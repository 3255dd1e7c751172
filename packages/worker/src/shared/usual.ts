import { medianOf } from '@piecework/protocol';

/** So many of the last successes say what is usual. */
const LATELY = 31;
/** Beyond those, one of so many is measured: a look at the clock costs a hundredth of a short sub-request. */
const EACH = 8;

/** How long handlers of a request usually run on this worker, by its last successes. */
export class Usual {
  readonly #lately: number[] = [];
  #next = 0;
  #count = 0;

  /** One succeeded that was started then, as performance.now(). */
  note(startedAt: number): void {
    this.#count += 1;
    if (this.#count > LATELY && this.#count % EACH > 0) return;
    this.#lately[this.#next] = performance.now() - startedAt;
    this.#next = (this.#next + 1) % LATELY;
  }

  /** In ms; undefined: nothing succeeded here. */
  get medianMs(): number | undefined {
    return medianOf(this.#lately);
  }
}
