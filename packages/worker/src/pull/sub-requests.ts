import { AbortError, type OptionTable, onAbort, option, shape } from '@piecework/protocol/contract';
import type { Ask, Pull } from './pull.js';
import type { SubRequest } from './sub-request.js';

export interface SubRequestsOptions {
  /**
   * Ends the iteration: a `next()` that waits rejects with an AbortError, and nothing more is taken. The consumer
   * keeps what it has.
   */
  readonly signal?: AbortSignal | undefined;
}

export const subRequestsOptions: OptionTable = {
  signal: option.custom(shape.instance(AbortSignal), 'an AbortSignal'),
};

/** One consumer's iteration over the work of a queue. */
export class SubRequests<Payload, Result>
  implements AsyncIterator<SubRequest<Payload, Result>, undefined>
{
  readonly #pull: Pull;
  readonly #start: () => Promise<unknown>;
  readonly #signal: AbortSignal | undefined;
  #ended = false;

  constructor(pull: Pull, start: () => Promise<unknown>, { signal }: SubRequestsOptions) {
    this.#pull = pull;
    this.#start = start;
    this.#signal = signal;
  }

  /** @throws AbortError · what `start` throws; the worker is closed then */
  next(): Promise<IteratorResult<SubRequest<Payload, Result>, undefined>> {
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    if (this.#signal?.aborted) return Promise.reject(this.#aborted());
    return new Promise((resolve, reject) => {
      const refuse = () => this.#pull.refuse((one) => one === ask, this.#aborted());
      // Only while it waits: an iteration that is dropped without `return` would listen forever.
      const unlisten = this.#signal ? onAbort(this.#signal, refuse) : () => {};
      const ask: Ask = {
        by: this,
        resolve: (answer) => {
          unlisten();
          resolve(answer as never);
        },
        reject: (error) => {
          unlisten();
          reject(error);
        },
      };
      this.#pull.ask(ask);
      this.#start().catch((error: unknown) => this.#pull.refuse((one) => one === ask, error));
    });
  }

  async return(): Promise<IteratorResult<SubRequest<Payload, Result>, undefined>> {
    this.#ended = true;
    this.#pull.withdraw(this);
    return { done: true, value: undefined };
  }

  #aborted(): AbortError {
    return new AbortError('subRequests', this.#signal?.reason);
  }
}
