import { moveClock } from '../../support/clock.js';

/** So long, in ms, nothing has to move before time passes; longer than the roles' first backoff. */
const QUIET_MS = 80;
/** And so many reads in a row have to see the same: on a busy machine, a call takes as long as a read. */
const QUIET_READS = 8;
/** How far time goes ahead then, and how often at most until all has to be over. */
const STRIDE_MS = 10_000;
const STRIDES = 30;
/** So long nothing has to move after the last: a call of the actors may still be under way on a busy machine. */
const STILL_MS = 20_000;

/** Lets time pass whenever nothing has moved for a while. */
export class Quiet {
  #seen: string | undefined;
  #sinceMs = 0;
  #reads = 0;
  #strides = 0;

  /**
   * Answers whether time has passed, behind `onQuiet`. `now`: what moves when anything does.
   * @throws Error when nothing has moved after the last stride either
   */
  async see(now: string, onQuiet: () => Promise<unknown> = async () => {}): Promise<boolean> {
    if (now !== this.#seen) {
      this.#begin(now);
      return false;
    }
    this.#reads += 1;
    const forMs = this.#strides < STRIDES ? QUIET_MS : STILL_MS;
    if (this.#reads < QUIET_READS || performance.now() - this.#sinceMs <= forMs) return false;
    if (this.#strides === STRIDES) throw new Error(`not over: ${now}`);
    this.#strides += 1;
    await onQuiet();
    moveClock(STRIDE_MS);
    this.#begin(now);
    return true;
  }

  #begin(now: string): void {
    this.#seen = now;
    this.#sinceMs = performance.now();
    this.#reads = 0;
  }
}
