import type { Taken, TimedCommands } from '@piecework/protocol';
import { nanoid } from 'nanoid';

/** What was taken, with the times by our own clock between which the server did it. */
export interface Took extends Taken {
  readonly sentMs: number;
}

/**
 * Takes, one call at a time, each with its number. A call that failed may have been carried out: the
 * next one has its number again, and is answered what that one took.
 */
export class Taker {
  readonly #commands: TimedCommands;
  readonly #id = nanoid();
  #number = 1;

  constructor(commands: TimedCommands) {
    this.#commands = commands;
  }

  /** @throws ConditionError, ServerError, ConnectionError */
  async take(count: number, leaseMs: number): Promise<Took> {
    for (;;) {
      const sentMs = performance.now();
      const reply = await this.#commands.take(this.#id, this.#number, count, leaseMs);
      if (reply.verdict === 'taken') {
        this.#number += 1;
        return { ...reply, sentMs };
      }
      this.#number = reply.number + 1;
    }
  }
}

/** How long there is nothing to ask for, in ms, from the moment of the answer. */
export const restMs = ({ now, next }: Taken): number =>
  next < 0 ? Number.POSITIVE_INFINITY : Math.max(1, next - now);
