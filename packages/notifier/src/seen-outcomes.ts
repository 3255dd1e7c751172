import { IndexSet } from './index-set.js';
import type { ReadItem } from './read-entry.js';

/**
 * Which outcomes a reader has seen, one bit each. A server that lost its last writes records again what it
 * forgot, before or behind what was read last: so something is seen twice, and something else perhaps never.
 */
export class SeenOutcomes {
  readonly #succeeded = new IndexSet();
  /** By life: what failed in one may be redriven, and fail again in the next. */
  readonly #failed = new Map<string, IndexSet>();
  /** Whether anything was recorded twice. */
  twice = false;

  /** Answers whether it is new. `position`: of its entry in the stream. */
  add({ kind, index }: ReadItem, position: string): boolean {
    const isNew = this.#in(kind, position).add(index);
    this.twice ||= !isNew;
    return isNew;
  }

  get succeeded(): number {
    return this.#succeeded.size;
  }

  /** How many failed and did not succeed in a later life. */
  get failed(): number {
    const failed = new IndexSet();
    for (const indexes of this.#failed.values()) {
      for (const index of indexes.ascending()) if (!this.#succeeded.has(index)) failed.add(index);
    }
    return failed.size;
  }

  #in(kind: ReadItem['kind'], position: string): IndexSet {
    if (kind === 'succeeded') return this.#succeeded;
    const life = position.slice(0, position.indexOf('-'));
    let failed = this.#failed.get(life);
    if (!failed) {
      failed = new IndexSet();
      this.#failed.set(life, failed);
    }
    return failed;
  }
}
