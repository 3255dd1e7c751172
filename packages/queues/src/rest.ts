import { setMaxListeners } from 'node:events';
import { pause } from '@piecework/protocol';
import type { IdReference } from './id-reference.js';

/** When the callers of one object rest: as soon as enough answers in a row were PROCESSING. */
export class Rest {
  readonly #after: number;
  readonly #ms: number;
  readonly #closing: AbortSignal;
  /** How many answers were PROCESSING since the last other one. */
  #inARow = 0;

  constructor({ after, ms }: { after: number; ms: number }, closing: AbortSignal) {
    this.#after = after;
    this.#ms = ms;
    this.#closing = closing;
    // Each caller that rests listens.
    setMaxListeners(0, closing);
  }

  note(state: IdReference['state']): void {
    this.#inARow = state === 'PROCESSING' ? this.#inARow + 1 : 0;
  }

  /** Resolves after the rest, or earlier when `signal` aborts or the object is closed. */
  async ifDue(signal: AbortSignal | undefined): Promise<void> {
    // Many callers may share one, and none of them listens for longer than it rests.
    if (signal) setMaxListeners(0, signal);
    if (this.#inARow < this.#after) return;
    const signals = [this.#closing, ...(signal ? [signal] : [])];
    if (signals.some(({ aborted }) => aborted)) return;
    const over = new AbortController();
    const stop = () => over.abort();
    for (const one of signals) one.addEventListener('abort', stop, { once: true });
    await pause(this.#ms, over.signal);
    for (const one of signals) one.removeEventListener('abort', stop);
  }
}
