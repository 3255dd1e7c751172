/** The shortest time between two reads is the longest one divided by this. */
// cure: state re-read by the waiter, often while few wait
const SHORTEST_PART = 10;
/** At most this many turns are given within the longest time. */
const TURNS = 1_500;
/** A thing is read again after its waiting time so far divided by this, once that is longer. */
const AGE_PART = 200;
/** How many steps there are in the shortest time. */
const STEPS = 6;

interface Turn {
  /** When the wait began. */
  readonly since: number;
  /** When it last had its turn, and when it was last read. */
  at: number;
  readAt: number;
}

/**
 * When each of the things that are waited for is read again, in case a notice was lost. A few are read every
 * `longestMs` / 10; many as often as 1,500 turns in `longestMs` allow; each at least every `longestMs`. A thing that
 * has been waited for a long time is read less often: after a 200th part of that time. All times in ms, of one clock.
 */
export class ReadPace<Thing> {
  readonly #longestMs: number;
  /** In the order of their turns. */
  readonly #turns = new Map<Thing, Turn>();

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** How often `due` should be called, in ms. */
  get stepMs(): number {
    return Math.max(5, this.#longestMs / SHORTEST_PART / STEPS);
  }

  /** The wait for a thing begins, and the thing is read now. */
  begin(thing: Thing, now: number): void {
    this.#turns.delete(thing);
    this.#turns.set(thing, { since: now, at: now, readAt: now });
  }

  end(thing: Thing): void {
    this.#turns.delete(thing);
  }

  /** What is to be read now. */
  due(now: number): Thing[] {
    const due: Thing[] = [];
    const turnMs = this.#turnMs;
    for (const [thing, turn] of this.#turns) {
      // The first whose turn has not come: those behind it had theirs later.
      if (now - turn.at < turnMs) break;
      turn.at = now;
      this.#turns.delete(thing);
      this.#turns.set(thing, turn);
      const restMs = Math.min(this.#longestMs, (now - turn.since) / AGE_PART);
      if (now - turn.readAt < restMs) continue;
      turn.readAt = now;
      due.push(thing);
    }
    return due;
  }

  get #turnMs(): number {
    const ofMany = (this.#turns.size / TURNS) * this.#longestMs;
    return Math.min(this.#longestMs, Math.max(this.#longestMs / SHORTEST_PART, ofMany));
  }
}
