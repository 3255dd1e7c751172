import { AbortError, type OptionTable, onAbort, option } from '@piecework/protocol';
import { z } from 'zod';
import type { Ask, Pull } from './pull.js';
import type { SubRequest } from './sub-request.js';

export interface SubRequestsOptions {
  /**
   * Ends the iteration: a `next()` that waits rejects with an AbortError, and no more is taken. What was
   * given out stays with the consumer.
   */
  readonly signal?: AbortSignal | undefined;
}

export const subRequestsOptions: OptionTable = {
  signal: option.custom(z.instanceof(AbortSignal), 'an AbortSignal'),
};

/** One consumer's way through the work of a queue. */
export class SubRequests<Payload, Result>
  implements AsyncIterator<SubRequest<Payload, Result>, undefined>
{
  readonly #pull: Pull;
  readonly #start: () => Promise<unknown>;
  readonly #signal: AbortSignal | undefined;
  #over = false;

  constructor(pull: Pull, start: () => Promise<unknown>, { signal }: SubRequestsOptions) {
    this.#pull = pull;
    this.#start = start;
    this.#signal = signal;
  }

  /** @throws AbortError · what `start` throws; asking again starts again */
  next(): Promise<IteratorResult<SubRequest<Payload, Result>, undefined>> {
    if (this.#over) return Promise.resolve({ done: true, value: undefined });
    if (this.#signal?.aborted) return Promise.reject(this.#aborted());
    return new Promise((resolve, reject) => {
      const refuse = () => this.#pull.refuse((one) => one === ask, this.#aborted());
      // For as long as it waits: nobody says when an iteration that ended is forgotten.
      const stop = this.#signal ? onAbort(this.#signal, refuse) : () => {};
      const ask: Ask = {
        by: this,
        resolve: (answer) => {
          stop();
          resolve(answer as never);
        },
        reject: (error) => {
          stop();
          reject(error);
        },
      };
      this.#pull.ask(ask);
      this.#start().catch((error: unknown) => this.#pull.refuse((one) => one === ask, error));
    });
  }

  async return(): Promise<IteratorResult<SubRequest<Payload, Result>, undefined>> {
    this.#over = true;
    this.#pull.withdraw(this);
    return { done: true, value: undefined };
  }

  #aborted(): AbortError {
    return new AbortError('subRequests', this.#signal?.reason);
  }
}
