import {
  Batcher,
  CALL_SIZE,
  type QueueCommands,
  ServerError,
  type SubmitBody,
  type SubmitHead,
} from '@piecework/protocol';
import { CHUNK_ITEMS, WHOLE_BYTES } from '../items/chunk-size.js';

/** What the submissions of one call have in common. */
export interface SharedHead extends SubmitHead {
  /** All of it as a text, made once. */
  readonly text: string;
}

interface Submitting {
  readonly head: SharedHead;
  readonly body: SubmitBody;
}

const isAcrossSlots = (error: unknown) =>
  error instanceof ServerError && error.message.includes('CROSSSLOT');

/** The whole submissions to one queue: those with the same options go together. */
class Submits {
  readonly #batcher: Batcher<Submitting, number>;
  /** Set when the server has said that the two sides are apart, as a proxy before a cluster does. */
  #isApart = false;

  constructor(queue: QueueCommands) {
    this.#batcher = new Batcher({
      kindOf: ({ head }) => head.text,
      sizeOf: ({ body: { payloads } }) => {
        const bytes = payloads.reduce((sum, { length }) => sum + length, 0);
        return Math.max(
          1,
          CALL_SIZE * Math.max(payloads.length / CHUNK_ITEMS, bytes / WHOLE_BYTES),
        );
      },
      send: (some) =>
        queue.submit(
          some[0].head,
          some.map(({ body }) => body),
        ),
    });
  }

  /** Answers the generation; 0: the request has to be submitted by the separate calls. */
  async submit(head: SharedHead, body: SubmitBody): Promise<number> {
    if (this.#isApart) return 0;
    try {
      return await this.#batcher.ask({ head, body });
    } catch (error) {
      if (!isAcrossSlots(error)) throw error;
      this.#isApart = true;
      return 0;
    }
  }
}

const known = new WeakMap<QueueCommands, Submits>();

export function submitsOf(queue: QueueCommands): Pick<Submits, 'submit'> {
  const submits = known.get(queue) ?? new Submits(queue);
  known.set(queue, submits);
  return submits;
}
