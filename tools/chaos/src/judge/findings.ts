import { type Finding, KINDS, type Kind } from './verdict.js';

const EXAMPLES = 10;

/** Gathers what is wrong: all of it is counted, the first of each kind are kept in words. */
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
