/**
 * When a worker process that ended is started again, and when no more. A start that fails at once would
 * otherwise be repeated for ever, and a handler that kills its process would keep a machine busy with starts.
 *
 * Each process brings `perProcess` restarts to what all of them share. An end costs 1, one before the process
 * was ready `UNREADY_COST`. Whatever a handler finishes, anywhere in the fleet, fills it up again.
 */

const UNREADY_COST = 10;
/** Wait before the first start, in ms; doubled for each further end in a row. */
const FIRST_MS = 100;
/** Longest wait, in ms, for a process that was ready: who ended it is found by ending some more. */
const LONGEST_MS = 2_000;
/** The same, for one that was not. */
const LONGEST_UNREADY_MS = 30_000;

export class RestartBudget {
  readonly #full: number;
  readonly #inARow: number[];
  #left: number;
  /** Ends since something was finished. */
  ends = 0;

  constructor(processes: number, perProcess: number) {
    this.#full = processes * perProcess;
    this.#left = this.#full;
    this.#inARow = Array.from({ length: processes }, () => 0);
  }

  /** The process at `place` has finished something. */
  refill(place: number): void {
    this.#left = this.#full;
    this.#inARow[place] = 0;
    this.ends = 0;
  }

  /** In how many ms the one at `place`, which ended, is to be started again; undefined: nothing is left. */
  spend(place: number, wasReady: boolean): number | undefined {
    this.ends += 1;
    this.#left -= wasReady ? 1 : UNREADY_COST;
    if (this.#left < 0) return undefined;
    const before = this.#inARow[place] ?? 0;
    this.#inARow[place] = before + 1;
    return Math.min(wasReady ? LONGEST_MS : LONGEST_UNREADY_MS, FIRST_MS * 2 ** before);
  }
}
