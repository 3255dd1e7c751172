import { InvalidOptionError, NAME, type Usage } from '@piecework/protocol';

/** Most names for which one attempt, or one request, has sums. */
const MOST_NAMES = 20;
const MOST = Number.MAX_VALUE;

const ALLOWED = {
  object: 'an object of numbers, such as { tokens: 12, usd: 0.003 }',
  name: 'as names 1 to 128 of A-Z a-z 0-9 _ . : -',
  number: 'a finite number of at least 0',
  names: `at most ${MOST_NAMES} names in one attempt`,
};

/** What one attempt used, as its handler says. */
export class Used {
  readonly #sums = new Map<string, number>();

  get sums(): Usage {
    return this.#sums;
  }

  /** Adds to the sums. @throws InvalidOptionError before anything is added */
  add(amounts: unknown): void {
    if (typeof amounts !== 'object' || amounts === null || Array.isArray(amounts))
      throw new InvalidOptionError('usage', amounts, ALLOWED.object);
    const given = Object.entries(amounts);
    for (const [name, amount] of given) {
      if (!NAME.test(name)) throw new InvalidOptionError('usage', name, ALLOWED.name);
      if (typeof amount !== 'number' || !(amount >= 0 && amount <= MOST))
        throw new InvalidOptionError(`usage.${name}`, amount, ALLOWED.number);
    }
    const names = new Set([...this.#sums.keys(), ...given.map(([name]) => name)]);
    if (names.size > MOST_NAMES) throw new InvalidOptionError('usage', names.size, ALLOWED.names);
    for (const [name, amount] of given)
      this.#sums.set(name, Math.min(MOST, (this.#sums.get(name) ?? 0) + amount));
  }
}
