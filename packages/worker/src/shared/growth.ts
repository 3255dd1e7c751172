/** Weight of the last value in an average. */
const NEW = 1 / 8;

/**
 * Whether settling a request makes its server fuller: the results and errors that are stored, compared with the
 * payloads that are deleted. Known from the first settled sub-request on, and remembered beyond a session.
 */
export class Growth {
  #payload = 0;
  #result = 0;
  #error = 0;
  #known = false;
  /** Whether results are stored; undefined: not asked yet. */
  keeps: boolean | undefined;

  /** Whether anything was settled here. */
  get isKnown(): boolean {
    return this.#known;
  }

  /** In characters; `error`: of a final failure. A failure that is retried changes nothing, and is not noted. */
  note(payload: number, result: number, error = -1): void {
    const weight = this.#known ? NEW : 1;
    this.#known = true;
    this.#payload += weight * (payload - this.#payload);
    this.#result += weight * (result - this.#result);
    // A failure is stored with its payload.
    this.#error += weight * ((error < 0 ? 0 : error + payload) - this.#error);
  }

  /** Whether it needs more than it frees. */
  get needsRoom(): boolean {
    // cure: work that frees memory continues on a nearly full server
    return (this.keeps ? this.#result : 0) + this.#error > this.#payload;
  }
}
