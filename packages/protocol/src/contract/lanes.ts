import type { QueueKeys } from './keys.js';

/** Where the tokens of a request are pushed. */
export interface Place {
  readonly priority: number;
  /** When it was due, in ms of the server's clock, if it is expedited. */
  readonly due?: number | undefined;
}

/** Parses the priority of a request as scripts reply it: 'priority', or 'priority~due'. */
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
 * The lanes of a queue that are used, as far as this process knows. A pop names only those, so a queue without
 * expedited requests has no cost from lanes. The push of the first token into a lane records the lane on the server. A
 * process learns of it from a message, from the reply of a tick, and from places that it receives. It forgets none: a
 * lane too many costs next to nothing, but tokens in a lane that it does not know would wait.
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

  /** As though all were used: for a caller that must not serve anything before a lane that it does not know yet. */
  learnAll(): void {
    this.learn(this.#keys.lists.map((_, priority) => priority).join(','));
  }

  /** Calls back whenever a lane is new. */
  onNew(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** The list into which tokens of this place are pushed. */
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

/** Keys of the lanes in a text such as '5,50'. */
export function laneKeys({ lane }: QueueKeys, priorities: string): string[] {
  return prioritiesOf(priorities).map(lane);
}

/** Keys of the lists and lanes in a text such as '0,50,50:due'. */
export function listKeys({ list, lane }: QueueKeys, names: string): string[] {
  if (names === '') return [];
  return names.split(',').map((name) => {
    const priority = Number.parseInt(name, 10);
    return name.endsWith(':due') ? lane(priority) : list(priority);
  });
}

function prioritiesOf(text: string | number): number[] {
  return text === '' ? [] : String(text).split(',').map(Number);
}

/** A reply with its priority and due time parsed. */
export type Placed<Of> = Omit<Of, 'priority'> & Place;

export function placed<Of extends { readonly priority: string }>(reply: Of): Placed<Of> {
  const { priority, due } = placeOf(reply.priority);
  // No reply has a `due` of its own.
  return { due, ...reply, priority };
}
