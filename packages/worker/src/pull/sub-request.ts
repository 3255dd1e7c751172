import type { HeldError } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { HandlerContext, PullContext, Settlement } from '../handler/handler.js';

/** One sub-request that a consumer pulled. It is in flight and occupies a slot until it is settled. */
export interface SubRequest<Payload = unknown, Result = unknown> extends HandlerContext {
  /** Name of the task of its request; '' when it has none. */
  readonly task: string;
  /** As it was submitted; a schema of the task is not applied. */
  readonly payload: Payload;
  /**
   * Settles it with this result. A result that is not JSON, or too large, fails it, as in a handler.
   * Returns whether this call decided; after `succeed` or `fail` every other call is ignored.
   */
  succeed(result?: Result): boolean;
  /**
   * Fails this attempt; another follows if one is left. An error that `holdRequest` or `holdQueue` returned gives
   * the sub-request back, and no attempt is counted; an UnrecoverableError is not retried. Returns as `succeed`.
   */
  fail(error: unknown): boolean;
  /** Resolves when the server has what was reported, or no longer wants it. Never rejects. */
  readonly settled: Promise<Settlement>;
}

/** A sub-request for its consumer: the context of a handler, and the two ways to end it. */
export class PulledSubRequest implements SubRequest {
  readonly task: string;
  readonly payload: unknown;
  readonly succeed: (result?: unknown) => boolean;
  readonly fail: (error: unknown) => boolean;
  readonly #context: PullContext;

  /** `end`: called by the first call of `succeed` or `fail`. */
  constructor(
    task: string,
    payload: unknown,
    context: PullContext,
    end: { succeeded: (result: unknown) => void; failed: (error: unknown) => void },
  ) {
    this.task = task;
    this.payload = payload;
    this.#context = context;
    let ended = false;
    const once = <T>(report: (what: T) => void) => {
      return (what: T) => {
        if (ended) return false;
        ended = true;
        report(what);
        return true;
      };
    };
    this.succeed = once(end.succeeded);
    this.fail = once(end.failed);
  }

  get requestId(): string {
    return this.#context.requestId;
  }

  get index(): number {
    return this.#context.index;
  }

  get attempt(): number {
    return this.#context.attempt;
  }

  get crashes(): number {
    return this.#context.crashes;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  get log(): Logger {
    return this.#context.log;
  }

  get settled(): Promise<Settlement> {
    return this.#context.settled;
  }

  get checkpointed(): unknown {
    return this.#context.checkpointed;
  }

  // Properties that hold functions, so that a consumer may take them out.
  get progress(): (n: number) => void {
    return this.#context.progress;
  }

  get checkpoint(): (value: unknown) => void {
    return this.#context.checkpoint;
  }

  get usage(): HandlerContext['usage'] {
    return this.#context.usage;
  }

  get retryAfter(): (ms: number) => void {
    return this.#context.retryAfter;
  }

  get holdRequest(): (ms: number) => HeldError {
    return this.#context.holdRequest;
  }

  get holdQueue(): (ms: number) => HeldError {
    return this.#context.holdQueue;
  }
}
