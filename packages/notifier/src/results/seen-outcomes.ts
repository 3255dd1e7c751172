import { IndexSet } from './index-set.js';
import type { ReadItem } from './read-entry.js';

/**
 * The outcomes that a reader has seen, one bit each. After a server lost its last writes, the lost outcomes are
 * recorded again, before or behind what was read last: so the reader sees one twice, and another one perhaps never.
 */
export class SeenOutcomes {
  readonly #succeeded = new IndexSet();
  /** By generation: what failed in one may be redriven, and fail again in the next. */
  readonly #failed = new Map<number, IndexSet>();
  /** Failures without an error: they were redriven, or the server has lost their errors since they were read. */
  readonly #takenBack = new IndexSet();
  #twice = false;
  /** The latest generation of all outcomes, and of those in `#takenBack`. */
  #newest = 0;
  #newestTakenBack = -1;

  /** Whether some may be recorded before what was read last: one was seen twice, or is recorded again. */
  get mayLackEarlier(): boolean {
    // A redrive has outcomes of a later generation.
    // cure: a failure whose error is lost is read again
    return this.#twice || this.#newestTakenBack >= this.#newest;
  }

  /** @param position of its entry in the stream @returns whether the outcome is new, and counts */
  add({ kind, index }: ReadItem, position: string): boolean {
    const generation = Number.parseInt(position, 10);
    this.#newest = Math.max(this.#newest, generation);
    if (kind === 'redriven') {
      this.#newestTakenBack = Math.max(this.#newestTakenBack, generation);
      this.#takenBack.add(index);
      return false;
    }
    const isNew = this.#in(kind, generation).add(index);
    this.#twice ||= !isNew;
    return isNew;
  }

  get succeeded(): number {
    return this.#succeeded.size;
  }

  /** How many failed and did not succeed in a later generation. */
  get failed(): number {
    const failed = new IndexSet();
    for (const indexes of [...this.#failed.values(), this.#takenBack]) {
      for (const index of indexes.ascending()) if (!this.#succeeded.has(index)) failed.add(index);
    }
    return failed.size;
  }

  /** How many failures were taken back that were not seen before, and have no later outcome. */
  get takenBack(): number {
    const outcomes = [this.#succeeded, ...this.#failed.values()];
    let count = 0;
    for (const index of this.#takenBack.ascending())
      if (!outcomes.some((seen) => seen.has(index))) count += 1;
    return count;
  }

  #in(kind: 'succeeded' | 'failed', generation: number): IndexSet {
    if (kind === 'succeeded') return this.#succeeded;
    let failed = this.#failed.get(generation);
    if (!failed) {
      failed = new IndexSet();
      this.#failed.set(generation, failed);
    }
    return failed;
  }
}
