/** How many requests are remembered. */
const REMEMBERED = 1_000;

/** What is known of the requests that this process had last, by generation. */
export class Remembered<T> {
  readonly #known = new Map<string, T>();
  readonly #make: () => T;

  constructor(make: () => T) {
    this.#make = make;
  }

  /** There is nothing left to know about it. */
  forget(id: string, generation: number): void {
    this.#known.delete(`${id}~${generation}`);
  }

  of(id: string, generation: number): T {
    const key = `${id}~${generation}`;
    const known = this.#known.get(key);
    if (known) this.#known.delete(key);
    else if (this.#known.size === REMEMBERED)
      this.#known.delete(this.#known.keys().next().value as string);
    const one = known ?? this.#make();
    this.#known.set(key, one);
    return one;
  }
}
