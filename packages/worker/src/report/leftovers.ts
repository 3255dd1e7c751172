/** After how long a handler that was asked to stop counts as one that continues, in ms; `slowMs`, where it is given. */
const CONTINUES_MS = 30_000;

/**
 * Handlers that continue although they were asked to stop, because the time of their attempt is up or their request
 * was dropped. A function cannot be ended from outside: each keeps its slot until it or the process ends.
 */
export class Leftovers {
  readonly #afterMs: number;
  #count = 0;

  constructor(afterMs = CONTINUES_MS) {
    this.#afterMs = afterMs;
  }

  /** How many there are now. */
  get count(): number {
    return this.#count;
  }

  /** It was asked to stop now; `onContinues` is called once it counts as one of these. */
  note(ended: Promise<unknown>, onContinues: () => void): void {
    let continues = false;
    const begins = setTimeout(() => {
      continues = true;
      this.#count += 1;
      onContinues();
    }, this.#afterMs).unref();
    void ended.then(() => {
      clearTimeout(begins);
      if (continues) this.#count -= 1;
    });
  }
}
