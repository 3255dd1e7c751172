/**
 * Decides whether and when a worker process that has ended is started again. Without a limit, a start that fails would
 * be repeated for ever, and a handler that kills its process would keep the machine busy with starts.
 *
 * The processes of a fleet share a budget of `perProcess` restarts each. An end costs 1, or `UNREADY_COST` before the
 * process was ready. When any handler of the fleet finishes a sub-request, the budget is full again.
 */

const UNREADY_COST = 10;
/** Delay before the first restart, in ms; doubled for each further end in a row. */
const FIRST_MS = 100;
/** Longest delay, in ms, of a process that was ready: some crashes are needed to find the guilty sub-request. */
const LONGEST_MS = 2_000;
/** Longest delay, in ms, of a process that was not ready. */
const LONGEST_UNREADY_MS = 30_000;

export class RestartBudget {
  readonly #full: number;
  readonly #inARow: number[];
  #left: number;
  /** The number of ends since a sub-request was last finished. */
  ends = 0;

  constructor(processes: number, perProcess: number) {
    this.#full = processes * perProcess;
    this.#left = this.#full;
    this.#inARow = Array.from({ length: processes }, () => 0);
  }

  /** The process at `place` has finished a sub-request. */
  refill(place: number): void {
    this.#left = this.#full;
    this.#inARow[place] = 0;
    this.ends = 0;
  }

  /** The delay, in ms, until the process at `place` is started again; undefined: the budget is spent. */
  spend(place: number, wasReady: boolean): number | undefined {
    this.ends += 1;
    this.#left -= wasReady ? 1 : UNREADY_COST;
    if (this.#left < 0) return undefined;
    const before = this.#inARow[place] ?? 0;
    this.#inARow[place] = before + 1;
    return Math.min(wasReady ? LONGEST_MS : LONGEST_UNREADY_MS, FIRST_MS * 2 ** before);
  }
}
