/** Times as close as this are one time, in ms. */
const GRAIN_MS = 5;
/** A time that finds no place behind so many is more than 5 s away: a tick before it finds it on the agenda. */
const MOST = 1_000;

const nextGrain = (ms: number): number => Math.ceil(ms / GRAIN_MS) * GRAIN_MS;

/**
 * When this process knows that something is due, until a tick has begun after it. Times are `performance.now()`. What is
 * due is found 5 to 10 ms later, so that one tick finds what is due together, and the server's clock has come as far.
 */
export class KnownTimes {
  /** Ascending, each once, at the end of the grain that follows what is due. */
  readonly #ticks: number[] = [];

  /** When a tick finds the first of them; Infinity: none is known. */
  get first(): number {
    return this.#ticks[0] ?? Number.POSITIVE_INFINITY;
  }

  add(due: number): void {
    const tick = nextGrain(due) + GRAIN_MS;
    const before = this.#ticks.findLastIndex((known) => known <= tick);
    if (this.#ticks[before] === tick) return;
    this.#ticks.splice(before + 1, 0, tick);
    if (this.#ticks.length > MOST) this.#ticks.pop();
  }

  /** Removes all that a tick which begins at `now` finds due. Returns whether it finds any. */
  remove(now: number): boolean {
    const later = this.#ticks.findIndex((tick) => tick > nextGrain(now));
    return this.#ticks.splice(0, later < 0 ? this.#ticks.length : later).length > 0;
  }
}
