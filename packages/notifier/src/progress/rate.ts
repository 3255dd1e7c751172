/** Settled per second over the last moments, by this process's own monotonic clock. */
const WINDOW_MS = 10_000;
/** A slow reporter has few samples in the window: it then uses at least this many, however old. */
const FEWEST = 5;

export class Rate {
  readonly #samples: { readonly atMs: number; readonly settled: number }[] = [];
  #generation = 0;

  /** Records how many are settled now. @returns the rate, 0 at the first call */
  note(generation: number, settled: number, atMs = performance.now()): number {
    if (generation !== this.#generation) this.#samples.length = 0;
    this.#generation = generation;
    this.#samples.push({ atMs, settled });
    while (this.#samples.length > FEWEST && atMs - (this.#samples[1]?.atMs ?? atMs) >= WINDOW_MS) {
      this.#samples.shift();
    }
    const first = this.#samples[0];
    if (!first || atMs <= first.atMs) return 0;
    return Math.max(0, ((settled - first.settled) * 1_000) / (atMs - first.atMs));
  }
}
