/** How many UTF-16 units of encoded items are kept from the first pass for the second. */
const KEEP_UNITS = 32 * 1_024 * 1_024;

/**
 * The items of an array, encoded. Two passes read them: one to name the submission, one to send them. Items within
 * the bound are encoded once. The rest is encoded again, so that a huge array, which the caller keeps anyway, is not
 * in memory twice.
 */
export class KnownItems implements Iterable<string> {
  readonly #items: readonly unknown[];
  readonly #encode: (item: unknown, index: number) => string;
  readonly #kept: string[] = [];
  #room = KEEP_UNITS;

  constructor(items: readonly unknown[], encode: (item: unknown, index: number) => string) {
    this.#items = items;
    this.#encode = encode;
  }

  get length(): number {
    return this.#items.length;
  }

  /** All of them, if they have at most so many UTF-16 units together. @throws PayloadError */
  within(units: number): readonly string[] | undefined {
    const payloads: string[] = [];
    let left = units;
    for (const payload of this) {
      left -= payload.length;
      if (left < 0) return undefined;
      payloads.push(payload);
    }
    return payloads;
  }

  /** @throws PayloadError when its turn comes */
  *[Symbol.iterator](): Generator<string> {
    yield* this.#kept;
    for (let i = this.#kept.length; i < this.#items.length; i += 1) {
      const text = this.#encode(this.#items[i], i);
      this.#room -= text.length;
      if (this.#room >= 0) this.#kept.push(text);
      yield text;
    }
  }
}
