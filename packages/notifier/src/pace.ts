/** Of how many parts of the longest time between two reads the shortest is one. */
const SHORTEST_PART = 10;
/** So many are read again within the longest time; more are read no faster than that. */
const FAST = 1_500;
/** A wait is read again after such a part of its age, once that is longer. */
const AGE_PART = 200;
/** How many steps there are in the shortest time. */
const STEPS = 6;

interface Turn {
  /** Since when it is waited for. */
  readonly since: number;
  /** When its turn was last, and when it was read. */
  at: number;
  readAt: number;
}

/**
 * When which of the things that are waited for is to be read again, in case a notice was lost: a few every
 * `longestMs` / 10, many as seldom as 1,500 in `longestMs` allow, and none more seldom than `longestMs`. Who waits
 * for long is read more seldom: after a 200th part of the time so far. All times in ms, of one clock.
 */
export class Pace<Thing> {
  readonly #longestMs: number;
  /** In the order of their turns. */
  readonly #turns = new Map<Thing, Turn>();

  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** After so long `due` should be asked again. */
  get stepMs(): number {
    return Math.max(5, this.#longestMs / SHORTEST_PART / STEPS);
  }

  /** Somebody begins to wait for it, and it is read now. */
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
      // Those that had theirs stand behind.
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
    const ofMany = (this.#turns.size / FAST) * this.#longestMs;
    return Math.min(this.#longestMs, Math.max(this.#longestMs / SHORTEST_PART, ofMany));
  }
}
