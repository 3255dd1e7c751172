import type { PullContext } from '../handler/handler.js';
import { NotAskedFor, type Run } from '../handler/handler.js';
import type { Slots } from '../shared/slots.js';
import { PulledSubRequest, type SubRequest } from './sub-request.js';

type Answer = IteratorResult<SubRequest, undefined>;
const DONE: Answer = { done: true, value: undefined };

/** A `next()` that waits, and whose it is. */
export interface Ask {
  readonly by: object;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The demand of those who pull, in place of handlers. A slot is open for each sub-request that is out
 * (given out, not settled) and for each `next()` that waits, at most `concurrency` together; all others
 * are closed: withheld, as by a pause. So no more comes than was asked for, and nothing is held in advance.
 * All consumers of one worker share the demand; who asked first is served first.
 *
 * What comes although nobody waits any more, as after a `break`, goes back at once at no attempt.
 */
export class Pull {
  readonly #slots: Pick<Slots, 'capacity' | 'withhold'>;
  #asks: Ask[] = [];
  #out = 0;
  #closed = 0;
  #over = false;
  /** Whether anybody means to pull: without, and without a handler, a worker would never do a thing. */
  begun = false;

  constructor(slots: Pick<Slots, 'capacity' | 'withhold'>) {
    this.#slots = slots;
    this.#account();
  }

  /** What runs the sub-requests of a task: it gives them out, and ends as they are settled. */
  for(task: string): Run {
    return (payload, context) => this.#offer(task, payload, context);
  }

  ask(ask: Ask): void {
    if (this.#over) {
      ask.resolve(DONE);
      return;
    }
    this.#asks.push(ask);
    this.#account();
  }

  /** `by` waits for nothing more. */
  withdraw(by: object): void {
    for (const { resolve } of this.#takeBack((ask) => ask.by === by)) resolve(DONE);
  }

  /** What `which` waits for cannot come. */
  refuse(which: (ask: Ask) => boolean, error: unknown): void {
    for (const { reject } of this.#takeBack(which)) reject(error);
  }

  /** Nobody is given anything more. */
  end(): void {
    this.#over = true;
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
      const end = <T>(tell: (what: T) => void) => {
        return (what: T) => {
          this.#out -= 1;
          this.#account();
          tell(what);
        };
      };
      const ways = { succeeded: end(resolve), failed: end(reject) };
      ask.resolve({ done: false, value: new PulledSubRequest(task, payload, context, ways) });
    });
  }

  #account(): void {
    const { capacity } = this.#slots;
    const closed = Math.max(0, capacity - this.#out - this.#asks.length);
    if (closed !== this.#closed) this.#slots.withhold(closed - this.#closed);
    this.#closed = closed;
  }
}
