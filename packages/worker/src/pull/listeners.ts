import type { Outcome } from '@piecework/protocol';
import type { Attempt } from '../handler/attempt.js';

/** Consumers that wait until the outcomes of their sub-requests are settled, for one request. */
export class Listeners {
  readonly #waiting = new Map<Outcome, Attempt>();

  add(outcome: Outcome, attempt: Attempt): void {
    this.#waiting.set(outcome, attempt);
  }

  /** The server has answered these; `taken`: there was a request that took them. */
  notify(outcomes: readonly Outcome[], taken: boolean): void {
    if (this.#waiting.size === 0) return;
    for (const outcome of outcomes) {
      const attempt = this.#waiting.get(outcome);
      attempt?.notify(taken && outcome.kind !== 'b' ? 'reported' : 'returned');
      this.#waiting.delete(outcome);
    }
  }

  /** Nothing is reported of those that still wait. */
  end(): void {
    for (const attempt of this.#waiting.values()) attempt.notify('returned');
    this.#waiting.clear();
  }
}
