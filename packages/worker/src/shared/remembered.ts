/** How many requests are remembered. */
const REMEMBERED = 1_000;

/** What is known of the requests that this process had last, by generation. */
export class Remembered<T> {
  readonly #known = new Map<string, T>();
  readonly #make: () => T;

  constructor(make: () => T) {
    this.#make = make;
  }

  of(id: string, generation: number): T {
    const key = `${id}~${generation}`;
    const one = this.#known.get(key) ?? this.#make();
    this.#known.delete(key);
    this.#known.set(key, one);
    if (this.#known.size > REMEMBERED) {
      const [oldest = ''] = this.#known.keys();
      this.#known.delete(oldest);
    }
    return one;
  }
}
