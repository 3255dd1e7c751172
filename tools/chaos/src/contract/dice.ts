/**
 * Random numbers that follow from seeds (docs/decisions/0044): the same seeds give the same faults and the same work.
 * The timing is that of the machine, so two runs with one seed are similar and not equal.
 */
export class Dice {
  #state: number;

  /** Each combination of seeds has its own sequence. */
  constructor(...seeds: readonly number[]) {
    this.#state = 0x9e3779b9;
    for (const seed of seeds) {
      this.#state = (Math.imul(this.#state ^ seed, 0x85ebca6b) ^ (this.#state >>> 13)) | 0;
      this.next();
    }
  }

  /** From 0 to 1, 1 excluded (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** A whole number, both ends included. */
  whole(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  /** A whole number whose logarithm is uniform: small numbers are as likely as large ones. */
  magnitude(low: number, high: number): number {
    return Math.floor(Math.exp(this.between(Math.log(low), Math.log(high + 1))));
  }

  chance(part: number): boolean {
    return this.next() < part;
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[Math.floor(this.next() * list.length)] ?? list[0];
  }
}
