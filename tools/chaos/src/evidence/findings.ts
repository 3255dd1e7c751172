/** Kinds of findings. */
export const KINDS = [
  /** Acknowledged without a result; settled without a run; or the whole request was not found. */
  'lost',
  /** A run or a result of an item that nobody added, or a value that is not its item. */
  'unexpected',
  /** Two results of one sub-request in one reading. */
  'counted twice',
  /** Counts that do not add up, or are not those of the results. */
  'miscounted',
  /** Two waiters got different answers about one generation of a request. */
  'completed twice',
  'never completed',
  /** A waiter of a lost request got the answer that it had completed. */
  'told as completed',
  /** In the other queues: two processes had one key at once, by the server's clock. */
  'in two hands',
  /** In the other queues: a key was taken again after its end had counted. */
  'came back',
  /** More runs in flight than the limit, without zombies and doubtful ones. */
  'cap exceeded',
  'key left',
  /** A process that was not killed wrote half a line. */
  'torn journal',
  /** The run cannot be judged: it was not drained, keys were not listed, or results were not read. */
  'cut short',
] as const;
export type Kind = (typeof KINDS)[number];

export interface Finding {
  readonly count: number;
  /** The first of them, in words. */
  readonly examples: readonly string[];
}

const EXAMPLES = 10;

/** Collects findings: counts all of them, and keeps the first of each kind as examples. */
export class Findings {
  readonly #found = new Map<Kind, { count: number; examples: string[] }>(
    KINDS.map((kind) => [kind, { count: 0, examples: [] }]),
  );

  add(kind: Kind, example: string, count = 1): void {
    const found = this.#found.get(kind);
    if (!found) return;
    found.count += count;
    if (found.examples.length < EXAMPLES) found.examples.push(example);
  }

  get clean(): boolean {
    return [...this.#found.values()].every(({ count }) => count === 0);
  }

  all(): Record<Kind, Finding> {
    return Object.fromEntries(this.#found) as unknown as Record<Kind, Finding>;
  }
}
