import type { RequestState } from '@piecework/protocol';

/** A reason of ours: without one, Node makes a DOMException each time. */
const OVER = 'the request is over';

/**
 * What one waiting caller holds of a watched request. It ends once: with the state of the complete
 * request, or with the error that there is nothing to wait for.
 */
export class Ticket {
  /** Resolves at the first look after the ticket was drawn. */
  readonly looked: Promise<void>;
  /** The final state. @throws NotFoundError · ExpiredError · LostError · DroppedError · ClosedError */
  readonly ended: Promise<RequestState>;
  /** The final state, once it is known. */
  complete: RequestState | undefined;
  /** The life of the id that was seen last; 0 before any was. */
  generation = 0;
  /** Why its state could not be read at the last look; undefined when it could. */
  hindered: unknown;
  /** Has the state read now. */
  readonly ask: () => void;
  /** Throws why the request is not there, if it is not. */
  readonly expectThere: () => Promise<void>;
  /** The caller is not interested any more. */
  readonly leave: () => void;
  /** Made when somebody asks for its signal: who just awaits the end does not. */
  #aborting: AbortController | undefined;
  #isOver = false;
  #error: unknown;
  #onLook = () => {};
  #onEnd: { resolve: (state: RequestState) => void; reject: (error: unknown) => void };

  constructor(acts: Pick<Ticket, 'ask' | 'expectThere' | 'leave'>) {
    this.ask = acts.ask;
    this.expectThere = acts.expectThere;
    this.leave = acts.leave;
    this.looked = new Promise((resolve) => {
      this.#onLook = resolve;
    });
    this.#onEnd = { resolve: () => {}, reject: () => {} };
    this.ended = new Promise((resolve, reject) => {
      this.#onEnd = { resolve, reject };
    });
    // A reader looks at `complete` and may never ask for the promise.
    this.ended.catch(() => {});
  }

  /** Aborts at the end, whichever it is. */
  get over(): AbortSignal {
    this.#aborting ??= new AbortController();
    if (this.#isOver) this.#aborting.abort(OVER);
    return this.#aborting.signal;
  }

  #end(): void {
    this.#isOver = true;
    this.#aborting?.abort(OVER);
  }

  /** @throws what `ended` throws, if it has */
  throwIfAbsent(): void {
    if (this.#error) throw this.#error;
  }

  /** A look found it waiting (or, with 0, being created). */
  noteLook(generation: number): void {
    this.hindered = undefined;
    this.generation = generation;
    this.#onLook();
  }

  succeed(state: RequestState): void {
    this.complete = state;
    this.noteLook(state.generation);
    this.#onEnd.resolve(state);
    this.#end();
  }

  fail(error: unknown): void {
    this.#error = error;
    this.#onLook();
    this.#onEnd.reject(error);
    this.#end();
  }
}
