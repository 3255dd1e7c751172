import { OTHER } from '../definitions/definition.js';

/**
 * Values of a label that come from users: the first ones keep their names, all others share one, so that no program can
 * make Prometheus keep any number of series.
 */
export class BoundedNames {
  readonly #most: number;
  readonly #allowed: RegExp;
  readonly #known = new Set<string>();

  constructor(most: number, allowed: RegExp) {
    this.#most = most;
    this.#allowed = allowed;
  }

  of(name: string): string {
    if (this.#known.has(name)) return name;
    if (this.#known.size >= this.#most || !this.#allowed.test(name)) return OTHER;
    this.#known.add(name);
    return name;
  }
}
