import type { PullContext } from '../handler/handler.js';
import { NotAskedFor, type Run } from '../handler/handler.js';
import type { Slots } from '../shared/slots.js';
import { PulledSubRequest, type SubRequest } from './sub-request.js';

type Answer = IteratorResult<SubRequest, undefined>;
const DONE: Answer = { done: true, value: undefined };

/** A `next()` that waits; `by`: the iterator that it was called on. */
export interface Ask {
  readonly by: object;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The demand of consumers that pull, in place of handlers. A slot is open for each sub-request that is out
 * (given to a consumer, not settled) and for each `next()` that waits, at most `concurrency` together. All other
 * slots are withheld, as by a pause. So the worker takes no more than was asked for, and nothing in advance. All
 * consumers of one worker share the demand; the first `next()` is served first.
 *
 * A sub-request that comes when no `next()` waits any more, as after a `break`, is given back at once, and no
 * attempt is counted.
 */
export class Pull {
  readonly #slots: Pick<Slots, 'capacity' | 'withhold'>;
  #asks: Ask[] = [];
  #out = 0;
  #closed = false;
  /** How many slots are withheld now. */
  #withheld = 0;
  /** Whether a consumer was made. A worker that has neither a consumer nor a handler would do nothing. */
  begun = false;

  constructor(slots: Pick<Slots, 'capacity' | 'withhold'>) {
    this.#slots = slots;
    this.#account();
  }

  /** Runs the sub-requests of a task: gives each to a consumer, and ends when that one settles it. */
  for(task: string): Run {
    return (payload, context) => this.#offer(task, payload, context);
  }

  ask(ask: Ask): void {
    if (this.#closed) {
      ask.resolve(DONE);
      return;
    }
    this.#asks.push(ask);
    this.#account();
  }

  /** The iterator `by` waits for nothing more. */
  withdraw(by: object): void {
    for (const { resolve } of this.#takeBack((ask) => ask.by === by)) resolve(DONE);
  }

  /** Rejects those that wait, as far as `which` selects them. */
  refuse(which: (ask: Ask) => boolean, error: unknown): void {
    for (const { reject } of this.#takeBack(which)) reject(error);
  }

  /** Ends all iterations: no consumer gets anything more. */
  close(): void {
    this.#closed = true;
    for (const { resolve } of this.#takeBack(() => true)) resolve(DONE);
  }

  #takeBack(which: (ask: Ask) => boolean): Ask[] {
    const taken = this.#asks.filter(which);
    this.#asks = this.#asks.filter((ask) => !which(ask));
    this.#account();
    return taken;
  }

  #offer(task: string, payload: unknown, context: PullContext): Promise<unknown> {
    const ask = this.#out < this.#slots.capacity ? this.#asks.shift() : undefined;
    if (!ask) return Promise.reject(new NotAskedFor());
    this.#out += 1;
    this.#account();
    return new Promise((resolve, reject) => {
      const end = <T>(report: (what: T) => void) => {
        return (what: T) => {
          this.#out -= 1;
          this.#account();
          report(what);
        };
      };
      const ways = { succeeded: end(resolve), failed: end(reject) };
      ask.resolve({ done: false, value: new PulledSubRequest(task, payload, context, ways) });
    });
  }

  #account(): void {
    const { capacity } = this.#slots;
    const withheld = Math.max(0, capacity - this.#out - this.#asks.length);
    if (withheld !== this.#withheld) this.#slots.withhold(withheld - this.#withheld);
    this.#withheld = withheld;
  }
}
