import { nextTurn } from './waiting.js';

export interface BatcherParts<Asked, Answer> {
  /** What goes together is of one kind. */
  readonly kindOf: (asked: Asked) => unknown;
  /** How much of a call it takes, of `CALL_SIZE`. */
  readonly sizeOf: (asked: Asked) => number;
  /** Sends one call; answers each of `some`, in their order. */
  readonly send: (some: readonly [Asked, ...Asked[]]) => Promise<readonly Answer[]>;
  /** Whether the server refused the call for one of those in it, so that each is to be sent alone. */
  readonly isRefused: (error: unknown) => boolean;
}

interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The most of one call. A process goes on with what was answered while the server carries out the next call; in a larger one
 * the first would wait for the last, and so would all other callers.
 */
export const CALL_SIZE = 25;

/**
 * Gathers what is asked for in one turn of the event loop, and sends it to the server in few calls. Alone or together
 * makes no difference to who asks.
 */
export class Batcher<Asked, Answer> {
  readonly #parts: BatcherParts<Asked, Answer>;
  #waiting: Waiting<Asked, Answer>[] = [];

  constructor(parts: BatcherParts<Asked, Answer>) {
    this.#parts = parts;
  }

  /** Resolves with the answer, or rejects as the call that it was sent in. */
  ask(asked: Asked): Promise<Answer> {
    // A tick that a promise asks for runs behind all promises of the turn.
    if (this.#waiting.length === 0) queueMicrotask(() => process.nextTick(() => this.#sendAll()));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject });
    });
  }

  /**
   * Sends each call in a turn of its own. A server that gets two calls together answers neither before it has carried
   * out both; then client and server would take turns, and each would wait for the other.
   */
  async #sendAll(): Promise<void> {
    const calls = this.#calls(this.#waiting);
    this.#waiting = [];
    for (const [i, some] of calls.entries()) {
      if (i > 0) await nextTurn();
      void this.#send(some);
    }
  }

  #calls(waiting: readonly Waiting<Asked, Answer>[]): Waiting<Asked, Answer>[][] {
    const calls: Waiting<Asked, Answer>[][] = [];
    const open = new Map<unknown, { call: Waiting<Asked, Answer>[]; size: number }>();
    for (const one of waiting) {
      const kind = this.#parts.kindOf(one.asked);
      const size = this.#parts.sizeOf(one.asked);
      const known = open.get(kind);
      if (known && known.size + size <= CALL_SIZE) {
        known.call.push(one);
        known.size += size;
      } else {
        const call = [one];
        calls.push(call);
        open.set(kind, { call, size });
      }
    }
    return calls;
  }

  async #send(some: readonly Waiting<Asked, Answer>[]): Promise<void> {
    try {
      const asked = some.map((one) => one.asked) as [Asked, ...Asked[]];
      const answers = await this.#parts.send(asked);
      for (const [i, { resolve }] of some.entries()) resolve(answers[i] as Answer);
    } catch (error) {
      // cure: a call that is refused for one request refuses no other
      if (some.length > 1 && this.#parts.isRefused(error)) {
        for (const one of some) void this.#send([one]);
      } else for (const { reject } of some) reject(error);
    }
  }
}
