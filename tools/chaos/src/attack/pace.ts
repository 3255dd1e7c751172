/** At most this many items are ordered and not yet settled. */
const BACKLOG = 6_000;
/** The full speed is measured for this long, after this warm-up, in ms. */
const MEASURE_MS = 15_000;
const WARM_UP_MS = 5_000;

/** How fast requests come. */
export class Pace {
  readonly #say: (line: string) => void;
  readonly #startedMs = performance.now();
  #perSecond: number | undefined;
  /** When the present rate began, and how many items had been ordered by then. */
  #since = { ms: this.#startedMs, items: 0 };
  #warm: { readonly ms: number; readonly settled: number } | undefined;

  constructor(itemsPerSecond: number | 'half', say: (line: string) => void) {
    this.#say = say;
    this.#perSecond = itemsPerSecond === 'half' ? undefined : itemsPerSecond;
  }

  /** Whether one more request may be ordered now. */
  allows(items: number, settled: number): boolean {
    this.#measure(items, settled);
    if (items - settled > BACKLOG) return false;
    if (this.#perSecond === undefined) return true;
    const seconds = (performance.now() - this.#since.ms) / 1_000;
    return items - this.#since.items < this.#perSecond * seconds;
  }

  /** At full speed until it is known, then at half of it. */
  #measure(items: number, settled: number): void {
    if (this.#perSecond !== undefined) return;
    const ms = performance.now();
    if (ms - this.#startedMs < WARM_UP_MS) return;
    this.#warm ??= { ms, settled };
    if (ms - this.#warm.ms < MEASURE_MS) return;
    const full = ((settled - this.#warm.settled) * 1_000) / (ms - this.#warm.ms);
    this.#perSecond = full / 2;
    this.#since = { ms, items };
    this.#say(`full speed is ${Math.round(full)} a second; continuing at half of it`);
  }
}
