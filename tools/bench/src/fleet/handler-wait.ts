/** How fast the estimate follows what was measured. */
const GAIN = 0.02;

/**
 * Waits as a handler does. Node's timers take whole milliseconds and are late by up to one, which is a tenth of a
 * handler of 5 ms. So each wait is shortened by the lateness of those before, by at most 1 ms: handlers take the time
 * that they should on average, as long as the event loop keeps up. A loop that is late by more stays late.
 */
export class HandlerWait {
  #lateMs = 0;
  /** What rounding has left out so far. */
  #restMs = 0;

  async wait(ms: number): Promise<void> {
    if (ms === 0) return;
    const wantedMs = ms - this.#lateMs + this.#restMs;
    const timerMs = Math.max(1, Math.round(wantedMs));
    this.#restMs = Math.min(1, Math.max(-1, wantedMs - timerMs));
    const startMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, timerMs));
    const lateMs = performance.now() - startMs - timerMs;
    this.#lateMs += GAIN * (Math.min(1, Math.max(-1, lateMs)) - this.#lateMs);
  }
}
