/** What the history of a queue counts. */
const COUNTED = ['succeeded', 'failed', 'cancelled', 'retried'] as const;

type Counted = (typeof COUNTED)[number];

/**
 * What a worker has done for one queue since its start. Each report contains all of it, so that the next report
 * contains what a lost one had; and what the last answered report contained, for a server that has lost that one.
 */
export class Figures {
  readonly #done: Record<Counted, number> = { succeeded: 0, failed: 0, cancelled: 0, retried: 0 };
  #sent: readonly number[] = [0, 0, 0, 0];
  #answered: readonly number[] = [0, 0, 0, 0];

  note(what: Counted, count = 1): void {
    this.#done[what] += count;
  }

  /** For lua/lib/series.lua. One report is under way at a time. */
  report(inFlight: number, slots: number): string {
    this.#sent = COUNTED.map((what) => this.#done[what]);
    return [inFlight, slots, ...this.#sent, ...this.#answered].join(' ');
  }

  /** The server has answered the last report. */
  answered(): void {
    // cure: a server that lost what it knew of a worker does not count all of it again
    this.#answered = this.#sent;
  }
}
