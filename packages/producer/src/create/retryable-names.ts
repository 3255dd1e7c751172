import { PieceworkError } from '@piecework/protocol';

/** How many submissions are remembered. */
const MOST = 1_000;

/**
 * Names of submissions that failed and may be repeated, by the id of their request. The items of a stream do not
 * name its submission, so that this process alone recognises a repetition.
 */
export class RetryableNames {
  readonly #names = new Map<string, string>();

  get(id: string): string | undefined {
    return this.#names.get(id);
  }

  forget(id: string): void {
    this.#names.delete(id);
  }

  /** Remembers the name of a submission that failed, if the error allows a repetition. */
  noteFailure(id: string, name: string, error: unknown): void {
    this.#names.delete(id);
    if (!(error instanceof PieceworkError && error.retryable)) return;
    this.#names.set(id, name);
    for (const oldest of this.#names.keys()) {
      if (this.#names.size <= MOST) return;
      this.#names.delete(oldest);
    }
  }
}
