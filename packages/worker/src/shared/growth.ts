/** Weight of what came last in an average. */
const NEW = 1 / 8;

/**
 * Whether settling a request makes the server fuller: its results and errors, as they are kept, against the
 * payloads that go. Known from the first that is settled here, and remembered beyond an session.
 */
export class Growth {
  #payload = 0;
  #result = 0;
  #error = 0;
  #known = false;
  /** Whether results are kept; undefined: nobody asked so far. */
  keeps: boolean | undefined;

  /** Whether anything was settled here. */
  get isKnown(): boolean {
    return this.#known;
  }

  /** In characters, `error` of a failure for good. One that is tried again frees and keeps nothing, and is none. */
  note(payload: number, result: number, error = -1): void {
    const weight = this.#known ? NEW : 1;
    this.#known = true;
    this.#payload += weight * (payload - this.#payload);
    this.#result += weight * (result - this.#result);
    // A failure keeps its payload too.
    this.#error += weight * ((error < 0 ? 0 : error + payload) - this.#error);
  }

  /** Whether it needs more than it frees. */
  get needsRoom(): boolean {
    return (this.keeps ? this.#result : 0) + this.#error > this.#payload;
  }
}
