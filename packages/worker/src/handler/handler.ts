import { type HeldError, InvalidOptionError, NAME } from '@piecework/protocol';
import type { Logger } from 'pino';

/**
 * What a handler is given beside the payload. Pass it on, or take out what you need: `{ signal, log }`. A copy by
 * `{ ...context }` lacks `signal`, `log`, `checkpointed` and all functions.
 */
export interface HandlerContext {
  readonly requestId: string;
  /** Place of the sub-request in its request, from 0. */
  readonly index: number;
  /** Number of this attempt, from 1; runs that crashed are not counted. */
  readonly attempt: number;
  /** How often its worker ended while it ran this sub-request: killed, out of memory, frozen beyond its lease. */
  readonly crashes: number;
  /**
   * Aborted when the outcome is not wanted any more: the request is cancelled or dropped, has reached its deadline or
   * too many failures (`onExceeded: 'cancel'`), the attempt has reached `attemptTimeoutMs`, the lease is lost, or the
   * worker closes. `signal.reason` is a TimeoutError for `attemptTimeoutMs`, else an AbortError.
   */
  readonly signal: AbortSignal;
  /** Logs with the ids of request and sub-request. */
  readonly log: Logger;
  /**
   * Reports how far this sub-request is, as a number on your own scale; `status` shows it. NaN and Infinity, such
   * as 0 / 0, are ignored. @throws InvalidOptionError when it is no number
   */
  progress(n: number): void;
  /**
   * If this attempt fails, the next one waits for `ms` instead of the backoff of the request, for example as the
   * `Retry-After` of a server asks. From 0 to a year. @throws InvalidOptionError
   */
  retryAfter(ms: number): void;
  /**
   * Holds the whole request for `ms`: no worker starts anything of it meanwhile; what runs continues. Returns an
   * error to throw, which gives this sub-request back and counts no attempt: `throw ctx.holdRequest(5_000)`.
   * From 1 to a year. @throws InvalidOptionError
   */
  holdRequest(ms: number): HeldError;
  /**
   * Stores how far this sub-request has come, for its next attempt: any JSON of at most 8 KiB. The last one counts.
   * It is sent with the next renewal, within a second, and before a failed attempt is reported; what a worker has
   * not sent is lost when it is killed. Deleted when the sub-request is settled.
   * @throws PayloadError when it is larger or not JSON; the one before stays
   */
  checkpoint(value: unknown): void;
  /**
   * Says what this attempt used, such as `{ tokens: 12, usd: 0.003 }`: names of your own and finite numbers from 0. What
   * several calls name is added up; `status` shows the sums of the request, in which failed attempts count too. A request
   * has sums of 20 names, and adds up what the others name as `other`. Lost if the worker is killed.
   * @throws InvalidOptionError for another value, or when this attempt names more than 20; then nothing is added
   */
  usage(amounts: Readonly<Record<string, number>>): void;
  /** The last checkpoint of an earlier attempt, also of one that crashed; undefined: there is none. */
  readonly checkpointed: unknown;
  /**
   * Pauses the whole queue for so many ms (1 to a year), for example when the service that all handlers call
   * asks to come back later. Throw the error that it returns: this sub-request is then given back, and no attempt
   * is counted. @throws InvalidOptionError
   */
  holdQueue(ms: number): HeldError;
}

/**
 * The answer to what a consumer reported. 'reported': the server took it; a failure may be tried again.
 * 'returned': it did not count, because the sub-request was given back, or its request is gone.
 */
export type Settlement = 'reported' | 'returned';

/** What a sub-request that was given to a consumer has beside the context of a handler. */
export interface PullContext extends HandlerContext {
  readonly settled: Promise<Settlement>;
}

/**
 * Runs one sub-request. What it returns is the result; what it throws fails the attempt. Without a task the payload
 * is not checked, so its type is `any` unless the handler names one.
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

/** What the worker runs for one sub-request: a handler, or what gives it to a consumer that pulls. */
export type Run = (payload: never, context: PullContext) => unknown;

/** Thrown for a sub-request that arrived after its consumer had left: it is returned, and no attempt is counted. */
export class NotAskedFor extends Error {}

/** Which handler runs which task, and how the scripts and the registry name these tasks. */
export class Handlers {
  readonly #byTask = new Map<string, Handler>();
  readonly #all: Handler | undefined;
  readonly #pull: { for(task: string): Run } | undefined;

  /**
   * `pull`: gives sub-requests to consumers, where neither is given.
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

  /** As the scripts take it: ' name name ' or '*'. */
  get served(): string {
    return this.#all || this.#pull ? '*' : ` ${[...this.#byTask.keys()].join(' ')} `;
  }

  /** As the registry shows it. */
  get tasks(): '*' | string[] {
    return this.#all || this.#pull ? '*' : [...this.#byTask.keys()];
  }
}
