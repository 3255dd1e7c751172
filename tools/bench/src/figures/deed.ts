/** A payload of the figures: the handler does what it says. */
export interface Deed {
  readonly n: number;
  /** So that it has the size of the others. */
  readonly pad: string;
  /** How long the handler waits, idle. */
  readonly sleepMs?: number;
  /** It runs until its worker tells it to stop, or dies. */
  readonly holds?: boolean;
}

/** Deeds one by one, so that a million need no memory. */
export function* makeDeeds(count: number, bytes: number, rest: Partial<Deed> = {}): Iterable<Deed> {
  for (let n = 0; n < count; n += 1) yield makeDeed(n, bytes, rest);
}

export function makeDeed(n: number, bytes: number, rest: Partial<Deed> = {}): Deed {
  const bare = JSON.stringify({ n, pad: '', ...rest }).length;
  return { n, pad: 'x'.repeat(Math.max(0, bytes - bare)), ...rest };
}
