import { type HeldError, InvalidOptionError, NAME } from '@piecework/protocol';
import type { Logger } from 'pino';

/** What a handler is given beside the payload. */
export interface HandlerContext {
  readonly requestId: string;
  /** Place of the sub-request in its request, from 0. */
  readonly index: number;
  /** 1 for the first run that may end in success or failure; runs that died do not count. */
  readonly attempt: number;
  /** How often its worker ended (killed, out of memory, frozen beyond its lease) while it held it. */
  readonly crashes: number;
  /** Aborted when the outcome is not wanted any more: lease lost, request dropped, worker closing. */
  readonly signal: AbortSignal;
  /** Logs with the ids of request and sub-request. */
  readonly log: Logger;
  /**
   * Reports how far this sub-request is, a number of your own scale; shown by `status`. NaN and Infinity, as of
   * a share of nothing, are passed over. @throws InvalidOptionError when it is no number
   */
  progress(n: number): void;
  /**
   * If this attempt fails, the next one waits for `ms`, whatever the backoff of the request says; for
   * what a server says of itself, as in `Retry-After`. From 0 to a year. @throws InvalidOptionError
   */
  retryAfter(ms: number): void;
  /**
   * Holds the whole request back for `ms`: nothing of it is started anywhere meanwhile; what runs goes
   * on. Answers an error to throw, which gives this sub-request back and counts no attempt:
   * `throw ctx.holdRequest(5_000)`. From 1 to a year. @throws InvalidOptionError
   */
  holdRequest(ms: number): HeldError;
  /**
   * Keeps how far this sub-request has come, for its next attempt: anything small as JSON, at most 8 KiB;
   * the last one counts. Sent with the next renewal, within a second, and before a failed attempt is
   * reported; a worker that is killed takes along what it had not sent. Gone when the sub-request is
   * settled.
   * @throws PayloadError when it is larger or not JSON; the one before stays
   */
  checkpoint(value: unknown): void;
  /** What an earlier attempt, also one that crashed, kept last; undefined: nothing. */
  readonly checkpointed: unknown;
  /**
   * Pauses the whole queue for so many ms (1 to a year), as when the service that all handlers call
   * says "come back later". Throw the error that it returns: this sub-request then comes back later
   * without an attempt counted. @throws InvalidOptionError
   */
  holdQueue(ms: number): HeldError;
}

/**
 * What became of what a consumer reported. 'reported': the server took it; a failure may be tried again.
 * 'returned': nothing of it counted, because the sub-request was given back, or its request is gone.
 */
export type Told = 'reported' | 'returned';

/** What a sub-request that is given out knows of itself while it runs. */
export interface PullContext extends HandlerContext {
  readonly settled: Promise<Told>;
}

/**
 * Runs one sub-request. What it returns is the result; what it throws fails the sub-request. Nobody has
 * checked a payload without a task, so its type is `any` unless the handler names one.
 */
// biome-ignore lint/suspicious/noExplicitAny: with `unknown`, a handler that names its payload would not fit
export type Handler<Payload = any, Result = unknown> = (
  payload: Payload,
  context: HandlerContext,
) => Result | Promise<Result>;

/** A handler for the requests of one task. */
export interface TaskHandler {
  readonly task: string;
  readonly run: Handler;
}

/** What the worker runs for one sub-request: a handler, or what gives it out to who pulls. */
export type Run = (payload: never, context: PullContext) => unknown;

/** Thrown for a sub-request that arrived after its consumer had left: it is returned, and no attempt is counted. */
export class NotAskedFor extends Error {}

/** Which handler runs what, and how the protocol is told. */
export class Handlers {
  readonly #byTask = new Map<string, Handler>();
  readonly #all: Handler | undefined;
  readonly #pull: { for(task: string): Run } | undefined;

  /**
   * `pull`: gives out what is to be pulled, where neither is given.
   * @throws InvalidOptionError when both are given, or a task is named twice.
   */
  constructor(
    handler: Handler | undefined,
    handlers: readonly TaskHandler[] | undefined,
    pull?: { for(task: string): Run },
  ) {
    if (handler !== undefined && handlers !== undefined) {
      throw new InvalidOptionError(
        'handler',
        'both',
        'either `handler` for all tasks or `handlers` by task',
      );
    }
    this.#all = handler;
    this.#pull = pull;
    for (const { task, run } of handlers ?? []) {
      if (!NAME.test(task)) throw new InvalidOptionError('handlers.task', task, String(NAME));
      if (this.#byTask.has(task))
        throw new InvalidOptionError('handlers', task, 'one handler per task');
      this.#byTask.set(task, run);
    }
  }

  /** What runs a task; undefined when it is not served here. */
  for(task: string): Run | undefined {
    return this.#pull?.for(task) ?? this.#all ?? this.#byTask.get(task);
  }

  /** Whether sub-requests are pulled. */
  get pulled(): boolean {
    return this.#pull !== undefined;
  }

  /** As the scripts want it: ' name name ' or '*'. */
  get served(): string {
    return this.#all || this.#pull ? '*' : ` ${[...this.#byTask.keys()].join(' ')} `;
  }

  /** As the registry shows it. */
  get tasks(): '*' | string[] {
    return this.#all || this.#pull ? '*' : [...this.#byTask.keys()];
  }
}
