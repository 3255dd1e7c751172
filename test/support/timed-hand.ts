import { TimedCommands, type TimedOutcome, type TimedPut } from '@piecework/protocol';
import { connected, freshName } from './given.js';

/** Of what it takes. */
export const LEASE_MS = 5_000;

/** One set, and calls with numbers that rise by themselves. */
export class Hand {
  readonly set: TimedCommands;
  #number = 0;

  constructor(set: TimedCommands) {
    this.set = set;
  }

  static async ofNew(): Promise<Hand> {
    return new Hand(new TimedCommands(await connected(), 'retry', freshName('delays')));
  }

  async put(key: string | readonly string[], time: TimedPut['time']): Promise<void> {
    this.#number += 1;
    const entries = [key].flat().map((one) => ({ key: one, time, token: '', payload: '1' }));
    await this.set.put('caller', this.#number, entries);
  }

  /** Answers in how many ms to ask again, too. */
  async take(count = 9) {
    this.#number += 1;
    const took = await this.set.take('caller', this.#number, count, LEASE_MS);
    if (took.verdict === 'late') throw new Error('late');
    const keys = took.taken.map(({ key }) => key);
    return { token: took.token, keys, now: took.now, inMs: took.next - took.now };
  }

  async settle(token: string, verb: TimedOutcome['verb'], value: string | number = '') {
    this.#number += 1;
    return this.set.settle('caller', this.#number, 3, [{ key: 'x', token, verb, value }]);
  }
}
