import { goesBefore, type Place } from '@piecework/protocol';

/** A request that waits for a slot of this worker. */
export interface Waiting extends Place {
  readonly id: string;
  readonly generation: number;
  /** The queue of the request, and whether it is paused. */
  readonly shard: { readonly name: string; readonly paused: boolean };
}

/**
 * Requests that this worker serves, and for which it had no free slot. It cannot rely on their tokens: an idle
 * worker that does not serve their task pops them first and parks the request again. So at the end of a time slice
 * these requests count among those that wait.
 */
export class WaitingRoom {
  readonly #waiting = new Map<string, Waiting>();

  add(waiting: Waiting): void {
    this.#waiting.set(waiting.id, waiting);
  }

  /** The request has all permits that it can use, or has ended. */
  delete(id: string): void {
    this.#waiting.delete(id);
  }

  /** The most urgent one, except `except` and those that come behind this place. */
  next(place: Place, except: string): Waiting | undefined {
    let found: Waiting | undefined;
    for (const waiting of this.#waiting.values()) {
      if (waiting.id === except || goesBefore(place, waiting) || waiting.shard.paused) continue;
      if (!found || goesBefore(waiting, found)) found = waiting;
    }
    return found;
  }
}
