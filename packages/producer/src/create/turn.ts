import {
  nextTurn,
  type QueueCommands,
  ServerError,
  type SubmitBody,
  type SubmitHead,
} from '@piecework/protocol';
import { CHUNK_ITEMS, WHOLE_BYTES } from '../items/chunk-size.js';

/*
 * Small submissions that come in one turn of the event loop go to the server together: those with the same options
 * in one call of `submit`. Alone or together makes no difference to a submission, except that it shares the answer.
 */

/** The most requests of one call: while the server carries one out, the next is made of those that were answered. */
const REQUESTS = 25;

/** What the submissions of one call have in common. */
export interface TurnHead extends SubmitHead {
  /** All of it as a text, made once. */
  readonly text: string;
}

interface Waiting {
  readonly head: TurnHead;
  readonly body: SubmitBody;
  readonly resolve: (generation: number) => void;
  readonly reject: (error: unknown) => void;
}

const sizeOf = ({ body }: Waiting) => body.payloads.reduce((sum, { length }) => sum + length, 0);

/** The submissions of one queue that wait for the end of this turn. */
class Turn {
  readonly #queue: QueueCommands;
  #waiting: Waiting[] = [];
  /** Set when the server has said that the two sides are apart, as a proxy before a cluster does. */
  #isApart = false;

  constructor(queue: QueueCommands) {
    this.#queue = queue;
  }

  /** Answers the generation; 0: the request has to be submitted by the separate calls. */
  submit(head: TurnHead, body: SubmitBody): Promise<number> {
    if (this.#isApart) return Promise.resolve(0);
    return new Promise((resolve, reject) => {
      // Behind what the promises of this turn still do.
      if (this.#waiting.push({ head, body, resolve, reject }) === 1)
        process.nextTick(() => this.#send());
    });
  }

  #send(): void {
    const alike = new Map<string, Waiting[]>();
    for (const one of this.#waiting) {
      const others = alike.get(one.head.text);
      if (others) others.push(one);
      else alike.set(one.head.text, [one]);
    }
    this.#waiting = [];
    void this.#sendEach([...alike.values()].flatMap(bounded));
  }

  /**
   * Sends each call in a turn of its own. A server that gets two calls together answers neither before it has carried
   * out both; then client and server would take turns, and each would wait for the other.
   */
  async #sendEach(calls: readonly (readonly Waiting[])[]): Promise<void> {
    for (const [i, some] of calls.entries()) {
      if (i > 0) await nextTurn();
      void this.#call(some);
    }
  }

  async #call(some: readonly Waiting[]): Promise<void> {
    const [{ head }] = some as [Waiting];
    try {
      const bodies = some.map(({ body }) => body);
      const generations = await this.#queue.submit(head, bodies);
      for (const [i, { resolve }] of some.entries()) resolve(generations[i] ?? 0);
    } catch (error) {
      const isRefused = error instanceof ServerError && !error.retryable;
      if (isRefused && error.message.includes('CROSSSLOT')) {
        this.#isApart = true;
        for (const { resolve } of some) resolve(0);
      } else if (isRefused && some.length > 1) {
        // cure: a submission that is refused refuses no other
        for (const one of some) void this.#call([one]);
      } else for (const { reject } of some) reject(error);
    }
  }
}

/** Parts that one call may carry. */
function bounded(group: readonly Waiting[]): Waiting[][] {
  const calls: Waiting[][] = [];
  let [items, units] = [0, 0];
  for (const one of group) {
    const [count, size] = [one.body.payloads.length, sizeOf(one)];
    const last = calls.at(-1);
    const fits = last && last.length < REQUESTS && items + count <= CHUNK_ITEMS;
    if (fits && units + size <= WHOLE_BYTES) {
      last.push(one);
      items += count;
      units += size;
    } else {
      calls.push([one]);
      [items, units] = [count, size];
    }
  }
  return calls;
}

const turns = new WeakMap<QueueCommands, Turn>();

/** The turn of the submissions to this queue. */
export function turnOf(queue: QueueCommands): Pick<Turn, 'submit'> {
  const known = turns.get(queue) ?? new Turn(queue);
  turns.set(queue, known);
  return known;
}
