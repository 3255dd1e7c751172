/** From when on a handler that was told to stop is one that goes on, in ms; `slowMs`, where it is given. */
const GOES_ON_MS = 30_000;

/**
 * Handlers that were told to stop, as their attempt is over its time or their request was dropped, and that go on.
 * Nobody can end a function from outside: each keeps its slot until it ends, or the process does.
 */
export class Leftovers {
  readonly #afterMs: number;
  #count = 0;

  constructor(afterMs = GOES_ON_MS) {
    this.#afterMs = afterMs;
  }

  /** How many there are now. */
  get count(): number {
    return this.#count;
  }

  /** From now on it is told to stop; `onGoesOn` is called once it is one of these. */
  note(ended: Promise<unknown>, onGoesOn: () => void): void {
    let goesOn = false;
    const begins = setTimeout(() => {
      goesOn = true;
      this.#count += 1;
      onGoesOn();
    }, this.#afterMs).unref();
    void ended.then(() => {
      clearTimeout(begins);
      if (goesOn) this.#count -= 1;
    });
  }
}
