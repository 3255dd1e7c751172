import { medianOf } from '@piecework/protocol';

/** How many of the last successes define what is usual. */
const LATELY = 31;
/** After those, one of so many is measured: reading the clock takes a hundredth of a short sub-request. */
const EACH = 8;
/** Over about how many measurements the average goes. */
const AVERAGED = 8;

/** How long handlers of a request usually run on this worker, by its last successes. */
export class Usual {
  readonly #lately: number[] = [];
  #next = 0;
  #count = 0;
  #averaged = 0;
  #averageMs: number | undefined;

  /** A handler that was started at this time, as performance.now(), has succeeded. */
  note(startedAt: number): void {
    this.#count += 1;
    if (this.#count > LATELY && this.#count % EACH > 0) return;
    const ms = performance.now() - startedAt;
    this.#lately[this.#next] = ms;
    this.#next = (this.#next + 1) % LATELY;
    // The first to end are the shortest: each of the first counts as much as the others.
    this.#averaged = Math.min(this.#averaged + 1, AVERAGED);
    const averageMs = this.#averageMs ?? 0;
    this.#averageMs = averageMs + (ms - averageMs) / this.#averaged;
  }

  /** What they took lately on average, in ms; undefined: nothing has succeeded here. */
  get averageMs(): number | undefined {
    return this.#averageMs;
  }

  /** In ms; undefined: nothing has succeeded here. */
  get medianMs(): number | undefined {
    return medianOf(this.#lately);
  }
}
