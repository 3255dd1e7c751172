import type { RequestStatus } from 'piecework';
import type { Waiting } from './work.js';

/** Most requests that one step reads. */
const STEP = 2_000;
/** Most requests that are kept; of a queue with more open ones, the others are not counted. */
const MOST = 50_000;

/** What is kept of an open request. */
export interface OpenRequest extends Waiting {
  readonly priority: number;
  readonly delayed: number;
  readonly createdAt: number;
  /** By the clock of the server, and by that of this process (performance.now()). */
  readonly readAt: number;
  readonly keptAt: number;
}

/**
 * The open requests of a queue. Redis has no sum of their counts, as each is in a hash slot of its own. So they are read
 * in passes. Each step reads a bounded number: all of them in a queue of usual size, otherwise some, and the others are
 * known as they were before.
 */
export class OpenRequests {
  readonly #list: () => AsyncGenerator<RequestStatus>;
  readonly #rows = new Map<string, OpenRequest>();
  #iterator: AsyncGenerator<RequestStatus> | undefined;
  /** When the pass began that found a row last; older rows are gone when it ends. */
  #passBeganAt = 0;

  constructor(list: () => AsyncGenerator<RequestStatus>) {
    this.#list = list;
  }

  get all(): Iterable<OpenRequest> {
    return this.#rows.values();
  }

  /** How long ago the row was read that was read first, in ms. */
  get ageMs(): number {
    let oldest = performance.now();
    const now = oldest;
    for (const { keptAt } of this.#rows.values()) oldest = Math.min(oldest, keptAt);
    return now - oldest;
  }

  /** Continues the pass through the queue, or begins one. */
  async step(): Promise<void> {
    if (!this.#iterator) {
      this.#passBeganAt = performance.now();
      this.#iterator = this.#list();
    }
    try {
      for (let read = 0; read < STEP; read++) {
        const next = await this.#iterator.next();
        if (next.done) return this.#endPass();
        this.#keep(next.value);
      }
    } catch (error) {
      this.#iterator = undefined;
      throw error;
    }
  }

  /** There is none. */
  clear(): void {
    void this.#iterator?.return(undefined).catch(() => {});
    this.#iterator = undefined;
    this.#rows.clear();
  }

  #keep(status: RequestStatus): void {
    const { id, counts, running, priority, limit, createdAt, readAt } = status;
    if (status.status === 'complete') this.#rows.delete(id);
    else if (this.#rows.size < MOST || this.#rows.has(id)) {
      // What is read ahead, or has ended and is not settled, still needs a slot or needs none for long.
      const ready = counts.ready + counts.inFlight - running;
      this.#rows.set(id, {
        task: status.task ?? '',
        ready,
        running,
        delayed: counts.delayed,
        priority,
        limit,
        createdAt,
        readAt,
        keptAt: performance.now(),
        rests: status.waitingFor === 'resume' || status.heldUntil !== undefined,
      });
    }
  }

  #endPass(): void {
    this.#iterator = undefined;
    for (const [id, { keptAt }] of this.#rows)
      if (keptAt < this.#passBeganAt) this.#rows.delete(id);
  }
}
