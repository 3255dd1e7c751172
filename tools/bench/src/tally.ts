/** Checks results: a run counts only if each of its numbers came exactly once. */
export class Tally {
  readonly #seen: Uint8Array;
  #count = 0;

  constructor(readonly expected: number) {
    this.#seen = new Uint8Array(expected);
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Counts a number, or a payload with its number.
   * @throws Error if the number is none of this run, or came before
   */
  add(value: unknown): void {
    const n = Number(typeof value === 'object' ? (value as { n?: unknown } | null)?.n : value);
    if (!Number.isInteger(n) || n < 0 || n >= this.expected) {
      throw new Error(`a result of another run: ${JSON.stringify(value)}`);
    }
    if (this.#seen[n]) throw new Error(`result ${n} came twice`);
    this.#seen[n] = 1;
    this.#count += 1;
  }

  /** @throws Error when results are missing */
  check(): void {
    if (this.#count === this.expected) return;
    throw new Error(`${this.#count} results of ${this.expected}`);
  }
}
