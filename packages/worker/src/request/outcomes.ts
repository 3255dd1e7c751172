import type { Outcome } from '@piecework/protocol';

/**
 * Most outcomes, and most bytes of them beside the first, in one call: no other call runs while a script does, and all
 * results of a call travel as one text, which Redis takes up to 512 MB (`proto-max-bulk-len`). So that text is at most
 * as long as one result (`maxResultBytes`) or a megabyte, and its indexes. A failure is kept with its payload. Each
 * outcome other than a success takes the server some commands, so it counts for several.
 */
const ITEMS = 500;
const NOT_SUCCEEDED = 3;
const BYTES = 1_000_000;

/** Outcomes of one request that wait to be settled. */
export class Outcomes {
  readonly #waiting: Outcome[] = [];
  #doubtful = false;
  /** Of all values that wait, in characters. */
  #length = 0;
  /** When the first of those that wait came, as performance.now(). */
  #since = 0;

  get size(): number {
    return this.#waiting.length;
  }

  /** Whether more waits than goes in about one call: until it is settled, nothing more should be read. */
  get isMuch(): boolean {
    return this.#waiting.length > ITEMS || this.#length > BYTES;
  }

  /** For how long the first of them has waited, in ms. */
  get waitedMs(): number {
    return performance.now() - this.#since;
  }

  /** Whether any of them may be of a grant that has ended, so that another worker may own its entry. */
  get doubtful(): boolean {
    return this.#doubtful && this.#waiting.length > 0;
  }

  /** The grant under which those that wait were read has ended, or may have. */
  doubt(): void {
    this.#doubtful = this.#waiting.length > 0;
  }

  push(outcome: Outcome): void {
    if (this.#waiting.length === 0) this.#since = performance.now();
    this.#waiting.push(outcome);
    this.#length += lengthOf(outcome);
  }

  /** Which sub-requests they are of. */
  entries(): string[] {
    return this.#waiting.map(({ entry }) => entry);
  }

  /** Takes what fits into one call. */
  next(): Outcome[] {
    let bytes = 0;
    let items = 0;
    let count = 0;
    for (const outcome of this.#waiting) {
      bytes += outcome.kind === 'b' ? 0 : Buffer.byteLength(outcome.value);
      // cure: the payload of a failure counts
      if (outcome.kind === 'f') bytes += outcome.payload ?? 0;
      items += outcome.kind === 's' ? 1 : NOT_SUCCEEDED;
      if (items > ITEMS || (count > 0 && bytes > BYTES)) break;
      count += 1;
    }
    const taken = this.#waiting.splice(0, count);
    for (const outcome of taken) this.#length -= lengthOf(outcome);
    if (this.#waiting.length === 0) this.#doubtful = false;
    return taken;
  }

  clear(): void {
    this.#waiting.length = 0;
    this.#length = 0;
    this.#doubtful = false;
  }
}

const lengthOf = (outcome: Outcome): number => (outcome.kind === 'b' ? 0 : outcome.value.length);
