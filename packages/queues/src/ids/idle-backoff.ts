import { pause } from '@piecework/protocol';
import type { IdReference } from './id-reference.js';

/** Slows the pulls of one object down as soon as enough answers in a row were `processing`. */
export class IdleBackoff {
  readonly #after: number;
  readonly #ms: number;
  readonly #closing: AbortSignal;
  /** Number of answers `processing` since the last other answer. */
  #inARow = 0;

  constructor({ after, ms }: { after: number; ms: number }, closing: AbortSignal) {
    this.#after = after;
    this.#ms = ms;
    this.#closing = closing;
  }

  note(state: IdReference['state']): void {
    this.#inARow = state === 'processing' ? this.#inARow + 1 : 0;
  }

  /** Waits if it is time to; ends early when `signal` aborts or the object is closed. */
  async ifDue(signal: AbortSignal | undefined): Promise<void> {
    if (this.#inARow < this.#after) return;
    await pause(this.#ms, this.#closing, signal);
  }
}
