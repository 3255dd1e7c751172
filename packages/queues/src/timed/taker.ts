import type { Taken, TimedCommands } from '@piecework/protocol';
import { nanoid } from 'nanoid';

/** What one call took, and when it was sent, by this process's clock. */
export interface Took extends Taken {
  readonly sentMs: number;
}

/**
 * Sends takes, one call at a time, each with a number. A call that failed may have been carried out: the next call has
 * the same number, and the server answers with what the first one took.
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
        return { sentMs, ...reply };
      }
      this.#number = reply.number + 1;
    }
  }
}

/** Time from the answer until the next item is due, in ms. */
export const restMs = ({ now, next }: Taken): number =>
  next < 0 ? Number.POSITIVE_INFINITY : Math.max(1, next - now);
