/** A request that waits for a slot of this worker. */
export interface Waiting {
  readonly id: string;
  readonly generation: number;
  readonly priority: number;
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

  /** The most urgent one of this priority or a more urgent one, but for `except`. */
  next(priority: number, except: string): Waiting | undefined {
    let found: Waiting | undefined;
    for (const waiting of this.#waiting.values()) {
      if (waiting.id === except || waiting.priority > priority) continue;
      if (!found || waiting.priority < found.priority) found = waiting;
    }
    return found;
  }
}
