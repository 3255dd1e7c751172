import { type ReaderCommands, TIMES } from '@piecework/protocol';

/** A reader says nothing before this time, in ms: a small request has ended by then. */
const FIRST_MS = 50;
/** How many times a reader says that it follows within the time for which it says so. */
const TIMES_SAID = 2.5;

/**
 * Lets the workers know that somebody waits for each result of a request: then they settle an outcome at once instead of
 * gathering several. A note that gets lost costs some milliseconds, and one that nobody renews ends by itself.
 */
export class Following {
  readonly #request: ReaderCommands;
  #noteAt = performance.now() + FIRST_MS;

  constructor(request: ReaderCommands) {
    this.#request = request;
  }

  /** The reader has read everything, and waits. Sends a note from time to time; nobody waits for it. */
  note(generation: number): void {
    const now = performance.now();
    if (generation === 0 || now < this.#noteAt) return;
    this.#noteAt = now + TIMES.followMs / TIMES_SAID;
    // The reads that follow fail too, and say so. A user without the right to write reads all the same.
    this.#request.follow(generation).catch(() => {});
  }
}
