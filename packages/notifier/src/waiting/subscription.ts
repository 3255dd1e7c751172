import {
  isOfLife,
  type PresentState,
  type RequestState,
  type ResultsEntry,
} from '@piecework/protocol';

/** Abort reason; without a reason, Node makes a DOMException each time. */
const ENDED = 'the request has ended';

/**
 * One caller's subscription to a watched request. It ends once: with the state of the complete request, or
 * with the error that there is nothing to wait for.
 */
export class Subscription {
  /** Resolves at the first read of the state after the caller subscribed. */
  readonly firstRead: Promise<void>;
  /** The final state. @throws NotFoundError · ExpiredError · LostError · DroppedError · ClosedError */
  readonly ended: Promise<RequestState>;
  /** The final state, once it is known. */
  complete: RequestState | undefined;
  /** All results, if the message of the completion brought them. */
  results: readonly ResultsEntry[] | undefined;
  /** Whether it began with an end that was remembered: the state was not read. */
  isRemembered = false;
  /** The latest generation of the request that the caller knows of; 0: none. */
  generation: number;
  /** Why the last read of the state failed; undefined when it succeeded. */
  hindered: unknown;
  /** Asks for the state to be read now. */
  readonly ask: () => void;
  /** Throws why the request is not there, if it is not. */
  readonly expectThere: () => Promise<void>;
  /** Ends the subscription: the caller is no longer interested. */
  readonly leave: () => void;
  /** Made when `endSignal` is first read: callers that only await the end do not need it. */
  #aborting: AbortController | undefined;
  #hasEnded = false;
  #error: unknown;
  #onFirstRead = () => {};
  #onEnd: { resolve: (state: RequestState) => void; reject: (error: unknown) => void };

  /** `seen`: a generation that the request is known to have reached; 0: none */
  constructor(seen: number, acts: Pick<Subscription, 'ask' | 'expectThere' | 'leave'>) {
    this.generation = seen;
    this.ask = acts.ask;
    this.expectThere = acts.expectThere;
    this.leave = acts.leave;
    this.firstRead = new Promise((resolve) => {
      this.#onFirstRead = resolve;
    });
    this.#onEnd = { resolve: () => {}, reject: () => {} };
    this.ended = new Promise((resolve, reject) => {
      this.#onEnd = { resolve, reject };
    });
    // Readers of `complete` may never ask for the promise.
    this.ended.catch(() => {});
  }

  /** Aborts when the subscription ends, either way. */
  get endSignal(): AbortSignal {
    this.#aborting ??= new AbortController();
    if (this.#hasEnded) this.#aborting.abort(ENDED);
    return this.#aborting.signal;
  }

  #end(): void {
    this.#hasEnded = true;
    this.#aborting?.abort(ENDED);
  }

  /** @throws what `ended` throws, if it has */
  throwIfAbsent(): void {
    if (this.#error) throw this.#error;
  }

  /** Whether this is the request of which the caller knows, and not another one that has had, or has, its id. */
  isOf(state: Pick<PresentState, 'generation' | 'first'>): boolean {
    return isOfLife(this.generation, state);
  }

  /** The caller learns that the request has reached this generation. */
  learn(generation: number): void {
    this.generation = Math.max(this.generation, generation);
  }

  /** A read found the request running (or, with 0, being created). */
  noteRead(generation: number): void {
    this.hindered = undefined;
    this.learn(generation);
    this.#onFirstRead();
  }

  succeed(state: RequestState, results?: readonly ResultsEntry[]): void {
    this.complete = state;
    this.results = results;
    this.noteRead(state.generation);
    this.#onEnd.resolve(state);
    this.#end();
  }

  fail(error: unknown): void {
    this.#error = error;
    this.#onFirstRead();
    this.#onEnd.reject(error);
    this.#end();
  }
}
