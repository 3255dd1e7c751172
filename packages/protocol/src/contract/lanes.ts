import type { QueueKeys } from './keys.js';

/** Where the tokens of a request go. */
export interface Place {
  readonly priority: number;
  /** When it was due, in ms of the server's clock, if it is expedited. */
  readonly due?: number | undefined;
}

/** What the scripts answer as the priority of a request: 'priority', or 'priority~due'. */
export function placeOf(text: string): Place {
  const [priority, due] = text.split('~');
  return due ? { priority: Number(priority), due: Number(due) } : { priority: Number(priority) };
}

/** Whether `a` is served before `b`; equal ones take turns. */
export function goesBefore(a: Place, b: Place): boolean {
  if (a.priority !== b.priority) return a.priority < b.priority;
  return (a.due || Number.POSITIVE_INFINITY) < (b.due || Number.POSITIVE_INFINITY);
}

/**
 * Which lanes of a queue are used, as far as this process knows. A pop names only those, so that a
 * queue without expedited requests pays nothing for them. The server is told with the first token in a
 * lane; a process learns it by a message, by the reply of a tick, and from places that it is given.
 * It forgets none: a name too many costs next to nothing, one that is missing leaves tokens alone.
 */
export class Lanes {
  readonly #keys: QueueKeys;
  readonly #known = new Set<number>();
  readonly #listeners = new Set<() => void>();
  #lists: readonly string[];

  constructor(keys: QueueKeys) {
    this.#keys = keys;
    this.#lists = keys.lists;
  }

  /** All lists, and the lanes that are known, in the order in which they are served. */
  get lists(): readonly string[] {
    return this.#lists;
  }

  /** The priorities of the lanes that are known, as the scripts have them: '5,50'. */
  get text(): string {
    return [...this.#known].join(',');
  }

  /** Learns that these lanes are used. */
  learn(priorities: string | number): void {
    const { size } = this.#known;
    for (const priority of prioritiesOf(priorities)) this.#known.add(priority);
    if (this.#known.size === size) return;
    const { list, lane, lists } = this.#keys;
    this.#lists = lists.flatMap((_, priority) =>
      this.#known.has(priority) ? [lane(priority), list(priority)] : [list(priority)],
    );
    for (const listener of this.#listeners) listener();
  }

  /** As though all were used: for who may not serve anything before a lane that it has not heard of. */
  learnAll(): void {
    this.learn(this.#keys.lists.map((_, priority) => priority).join(','));
  }

  /** Calls back whenever a lane is new. */
  onNew(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** The list into which the tokens of this place go. */
  listOf({ priority, due }: Place): string {
    if (!due) return this.#keys.list(priority);
    this.learn(priority);
    return this.#keys.lane(priority);
  }

  /** The lists that are served before this place, and its own as the last. */
  upTo(place: Place): readonly string[] {
    const own = this.listOf(place);
    // Most queues have no lanes.
    const at = this.#known.size === 0 ? place.priority : this.#lists.indexOf(own);
    return this.#lists.slice(0, at + 1);
  }
}

/** Keys of the lanes that such a text names. */
export function laneKeys({ lane }: QueueKeys, priorities: string): string[] {
  return prioritiesOf(priorities).map(lane);
}

function prioritiesOf(text: string | number): number[] {
  return text === '' ? [] : String(text).split(',').map(Number);
}
