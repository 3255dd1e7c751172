import type { Outcome } from '@piecework/protocol';
import type { Attempt } from '../handler/attempt.js';

/** Those of one request that are to hear what became of the outcomes that wait to be settled. */
export class Listeners {
  readonly #waiting = new Map<Outcome, Attempt>();

  add(outcome: Outcome, running: Attempt): void {
    this.#waiting.set(outcome, running);
  }

  /** The server has answered to these; `taken`: there was a request to take them. */
  tell(outcomes: readonly Outcome[], taken: boolean): void {
    if (this.#waiting.size === 0) return;
    for (const outcome of outcomes) {
      const running = this.#waiting.get(outcome);
      running?.tell(taken && outcome.kind !== 'b' ? 'reported' : 'returned');
      this.#waiting.delete(outcome);
    }
  }

  /** Of those that still wait nothing will be reported. */
  end(): void {
    for (const running of this.#waiting.values()) running.tell('returned');
    this.#waiting.clear();
  }
}
