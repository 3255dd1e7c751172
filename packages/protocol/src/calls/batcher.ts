import { ServerError } from '../contract/errors.js';

export interface BatcherParts<Asked, Answer> {
  /** What goes together is of one kind. */
  readonly kindOf: (asked: Asked) => unknown;
  /** How much of a call it takes, of `CALL_SIZE`. @default 1 */
  readonly sizeOf?: (asked: Asked) => number;
  /** Sends one call; answers each of `some`, in their order. */
  readonly send: (some: readonly [Asked, ...Asked[]]) => Promise<readonly Answer[]>;
}

interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

interface Call<Asked, Answer> {
  readonly kind: unknown;
  readonly some: Waiting<Asked, Answer>[];
  size: number;
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
  /** To be sent, in this order. */
  #calls: Call<Asked, Answer>[] = [];
  /** The last call of each kind. */
  readonly #last = new Map<unknown, Call<Asked, Answer>>();
  #isScheduled = false;

  constructor(parts: BatcherParts<Asked, Answer>) {
    this.#parts = parts;
  }

  /** Resolves with the answer, or rejects as the call that it was sent in. */
  ask(asked: Asked): Promise<Answer> {
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      // A tick that a promise asks for runs behind all promises of the turn.
      queueMicrotask(() => process.nextTick(() => this.#sendNext()));
    }
    const call = this.#callFor(this.#parts.kindOf(asked), this.#parts.sizeOf?.(asked) ?? 1);
    return new Promise((resolve, reject) => {
      call.some.push({ asked, resolve, reject });
    });
  }

  /** Sends what was gathered now: before a call that must not overtake it. */
  flush(): void {
    this.#last.clear();
    const calls = this.#calls;
    this.#calls = [];
    for (const { some } of calls) void this.#send(some);
  }

  #callFor(kind: unknown, size: number): Call<Asked, Answer> {
    const last = this.#last.get(kind);
    if (last && last.size + size <= CALL_SIZE) {
      last.size += size;
      return last;
    }
    const call = { kind, size, some: [] };
    this.#calls.push(call);
    this.#last.set(kind, call);
    return call;
  }

  /**
   * Sends each call in a turn of its own. A server that gets two calls together answers neither before it has carried
   * out both; then client and server would take turns, and each would wait for the other.
   */
  #sendNext(): void {
    const call = this.#calls.shift();
    this.#isScheduled = this.#calls.length > 0;
    if (this.#isScheduled) setImmediate(() => this.#sendNext());
    if (!call) return;
    if (this.#last.get(call.kind) === call) this.#last.delete(call.kind);
    void this.#send(call.some);
  }

  async #send(some: readonly Waiting<Asked, Answer>[]): Promise<void> {
    try {
      const asked = some.map((one) => one.asked) as [Asked, ...Asked[]];
      const answers = await this.#parts.send(asked);
      for (const [i, { resolve }] of some.entries()) resolve(answers[i] as Answer);
    } catch (error) {
      // cure: a call that is refused for one request refuses no other
      if (some.length > 1 && isRefused(error)) for (const one of some) void this.#send([one]);
      else for (const { reject } of some) reject(error);
    }
  }
}

/** Whether the server refused a call for what is in it. */
const isRefused = (error: unknown) => error instanceof ServerError && !error.retryable;
