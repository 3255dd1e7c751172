import { pause } from '@piecework/protocol';
import type { IdReference } from './id-reference.js';

/** When the callers of one object rest: as soon as enough answers in a row were PROCESSING. */
export class IdleBackoff {
  readonly #after: number;
  readonly #ms: number;
  readonly #closing: AbortSignal;
  /** How many answers were PROCESSING since the last other one. */
  #inARow = 0;

  constructor({ after, ms }: { after: number; ms: number }, closing: AbortSignal) {
    this.#after = after;
    this.#ms = ms;
    this.#closing = closing;
  }

  note(state: IdReference['state']): void {
    this.#inARow = state === 'PROCESSING' ? this.#inARow + 1 : 0;
  }

  /** Resolves after the rest, or earlier when `signal` aborts or the object is closed. */
  async ifDue(signal: AbortSignal | undefined): Promise<void> {
    if (this.#inARow < this.#after) return;
    await pause(this.#ms, this.#closing, signal);
  }
}
