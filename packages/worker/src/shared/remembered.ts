/** So many requests are remembered. */
const REMEMBERED = 1_000;

/** What is known of the requests that this process met last, one of each life. */
export class Remembered<T> {
  readonly #known = new Map<string, T>();
  readonly #make: () => T;

  constructor(make: () => T) {
    this.#make = make;
  }

  of(id: string, generation: number): T {
    const life = `${id}~${generation}`;
    const one = this.#known.get(life) ?? this.#make();
    this.#known.delete(life);
    this.#known.set(life, one);
    if (this.#known.size > REMEMBERED) {
      const [oldest = ''] = this.#known.keys();
      this.#known.delete(oldest);
    }
    return one;
  }
}
