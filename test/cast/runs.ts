/*
 * What handlers did, as seen from outside: the evidence that the judge (judge.ts) holds the results against.
 */

/** The runs of one sub-request. */
export interface Run {
  began: number;
  /** Runs that ended in a failure. */
  failed: number;
  /** Whether it ran isolated when its last worker died or stood still, so that the crash is its own. */
  isolated: boolean;
}

export class Runs {
  readonly #byKey = new Map<string, Run>();
  readonly #byGeneration: boolean;

  /** `byGeneration`: whether the runs of each generation of an id are told apart. Real handlers do not know theirs. */
  constructor({ byGeneration = false } = {}) {
    this.#byGeneration = byGeneration;
  }

  of(id: string, index: number, generation: number | string = ''): Run {
    const key = `${id} ${this.#byGeneration ? generation : ''}-${index}`;
    const known = this.#byKey.get(key) ?? { began: 0, failed: 0, isolated: false };
    this.#byKey.set(key, known);
    return known;
  }

  /** The same by the entry of the stream, `<generation>-<index>`. */
  ofEntry(id: string, entry: string): Run {
    const [generation, index] = entry.split('-') as [string, string];
    return this.of(id, Number(index), generation);
  }

  /** Whether a sub-request ran in any generation of its id. */
  everBegan(id: string, index: number): boolean {
    for (const [key, { began }] of this.#byKey)
      if (began > 0 && key.startsWith(`${id} `) && key.endsWith(`-${index}`)) return true;
    return false;
  }

  /** How many runs there were. */
  get began(): number {
    return [...this.#byKey.values()].reduce((sum, { began }) => sum + began, 0);
  }

  /** How many sub-requests ran isolated. */
  get isolated(): number {
    return [...this.#byKey.values()].filter(({ isolated }) => isolated).length;
  }
}
