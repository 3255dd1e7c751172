import { goesBefore, type Place } from '@piecework/protocol';

/** A request that waits for a slot of this worker. */
export interface Waiting extends Place {
  readonly id: string;
  readonly generation: number;
  /** The queue of the request, and whether it is paused. */
  readonly shard: { readonly name: string; readonly paused: boolean };
}

/**
 * Requests that this worker serves and had no free slot for, and whose tokens it cannot count on:
 * a worker that does not serve their task, and has nothing to do, pops them first and parks the
 * request again. So at the end of a time slice they count as others that wait.
 */
export class WaitingRoom {
  readonly #waiting = new Map<string, Waiting>();

  add(waiting: Waiting): void {
    this.#waiting.set(waiting.id, waiting);
  }

  /** It got what it can use, or is over. */
  delete(id: string): void {
    this.#waiting.delete(id);
  }

  /** The most urgent one of those that this place does not go before, but for `except`. */
  next(place: Place, except: string): Waiting | undefined {
    let found: Waiting | undefined;
    for (const waiting of this.#waiting.values()) {
      if (waiting.id === except || goesBefore(place, waiting) || waiting.shard.paused) continue;
      if (!found || goesBefore(waiting, found)) found = waiting;
    }
    return found;
  }
}
