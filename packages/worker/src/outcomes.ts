import type { Outcome } from '@piecework/protocol';

/** Most outcomes, and about most bytes of them, in one call: a script holds up everybody else. */
const ITEMS = 500;
const BYTES = 1_000_000;

/** Outcomes of one request that wait to be settled. */
export class Outcomes {
  readonly #waiting: Outcome[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  push(outcome: Outcome): void {
    this.#waiting.push(outcome);
  }

  /** Which sub-requests they are of. */
  entries(): string[] {
    return this.#waiting.map(({ entry }) => entry);
  }

  /** Takes what fits into one call. */
  next(): Outcome[] {
    let bytes = 0;
    let count = 0;
    for (const outcome of this.#waiting) {
      bytes += outcome.kind === 'b' ? 0 : outcome.value.length;
      if (count === ITEMS || (count > 0 && bytes > BYTES)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  clear(): void {
    this.#waiting.length = 0;
  }
}
