import {
  type AttemptPolicy,
  delayAfter,
  errorOf,
  ignoreRejection,
  LONGEST_DELAY_MS,
  nameOf,
  type Runs,
  type TraceContext,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import type { HandlerContext } from './handler.js';

/**
 * The delay before the next attempt, in ms, for requests whose backoff is 'custom'. `attempt`: the one
 * that failed, from 1 · `error`: what the handler threw · `context`: what the handler was given.
 */
export type BackoffFunction = (attempt: number, error: unknown, context: HandlerContext) => number;

/** Traces the runs of one task, of a request that stores this context. */
export type RunsOf = (task: string, trace: TraceContext | undefined) => Runs;

/** In place of a delay: there is no further attempt. */
const NONE = -1;

/** What a worker sets for all attempts. */
interface PolicyOfWorker {
  readonly id: string;
  readonly maxResultBytes: number;
  readonly jsonText: boolean;
  readonly backoff: BackoffFunction | undefined;
  readonly runsOf: RunsOf | undefined;
  readonly logger: Logger;
  /** Calls `say` the first time only that it is called with `what`. */
  once(what: string, say: () => void): void;
}

/** How attempts of one request are made on this worker. */
export class RetryPolicy {
  readonly maxResultBytes: number;
  /** Whether handlers get payloads as JsonText. */
  readonly jsonText: boolean;
  /** How long an attempt may take, in ms; 0: any time. */
  readonly timeoutMs: number;
  /** Id of this worker, if each outcome is to contain when and where it ran. */
  readonly timedBy: string | undefined;
  /** Makes a span of each run; undefined without telemetry. */
  readonly runs: Runs | undefined;
  readonly #worker: PolicyOfWorker;
  /** How often a sub-request is tried. */
  readonly attempts: number;
  readonly #policy: AttemptPolicy;

  constructor(worker: PolicyOfWorker, attempts: number, policy: AttemptPolicy, task = '') {
    this.#worker = worker;
    this.attempts = attempts;
    this.#policy = policy;
    this.maxResultBytes = worker.maxResultBytes;
    this.jsonText = worker.jsonText;
    this.timeoutMs = policy.attemptTimeoutMs ?? 0;
    this.timedBy = policy.timing ? worker.id : undefined;
    this.runs = worker.runsOf?.(task, policy.trace);
  }

  /** Whether no attempt follows the one of this number, whose failure waits so long. */
  isFinal(attempt: number, delayMs: number): boolean {
    return attempt >= this.attempts || delayMs < 0;
  }

  /** How long a sub-request whose attempt failed waits for the next one, in ms; -1: there is none. */
  delayMs(error: unknown, context: HandlerContext, asked: number | undefined): number {
    if (nameOf(error) === 'UnrecoverableError') return NONE;
    // No attempt is left, so no backoff is asked.
    if (context.attempt >= this.attempts) return 0;
    if (asked !== undefined) return asked;
    const { backoff } = this.#policy;
    if (!backoff) return 0;
    const custom = backoff.type === 'custom' ? this.#custom(error, context) : undefined;
    return custom ?? delayAfter(backoff, context.attempt);
  }

  /** The answer of the worker's own function; undefined when there is none, or it returns no time. */
  #custom(error: unknown, context: HandlerContext): number | undefined {
    const { backoff, logger } = this.#worker;
    try {
      const ms = backoff?.(context.attempt, error, context);
      if (ms !== undefined && Number.isFinite(ms) && ms >= 0)
        return Math.round(Math.min(ms, LONGEST_DELAY_MS));
      ignoreRejection(ms);
      this.#worker.once('backoff', () =>
        logger.warn(
          { requestId: context.requestId },
          backoff
            ? 'the backoff function returned no time in ms; delayMs is used'
            : 'a request asks for a backoff of the worker, which has none; delayMs is used',
        ),
      );
    } catch (error) {
      this.#worker.once('backoff', () =>
        logger.warn(
          { err: errorOf(error), requestId: context.requestId },
          'the backoff function threw',
        ),
      );
    }
    return undefined;
  }
}
