import {
  AbortError,
  checkOption,
  costText,
  decode,
  type Entry,
  encodeError,
  encodeResult,
  HeldError,
  InvalidOptionError,
  isThrown,
  LONGEST_DELAY_MS,
  type Outcome,
  option,
  type PieceworkError,
  type RunEnd,
  type RunSpan,
  TimeoutError,
  type Timing,
  withTiming,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import { Checkpoint } from './checkpoints.js';
import type { PullContext, Settlement } from './handler.js';
import { NotAskedFor, type Run } from './handler.js';
import type { RetryPolicy } from './retry-policy.js';
import { Used } from './used.js';

const DELAY = option.ms(0, LONGEST_DELAY_MS);
/** How long a handler may hold its request or the queue. */
const HOLD = option.ms(1, LONGEST_DELAY_MS);

/** Hold the request, or the queue, for so many ms; each resolves when the hold is in force. */
export interface Holds {
  request(ms: number): Promise<void>;
  queue(ms: number): Promise<void>;
}

/**
 * One sub-request while its handler runs. It ends in one outcome, or in none. A worker that lost the lease still
 * reports a success, which counts if it is the first. It reports no failure, but gives the sub-request back, which
 * has no effect when another worker has it. After a give-back nothing is reported.
 */
export class Attempt implements PullContext {
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  readonly crashes: number;
  readonly entry: string;
  /** Length of its payload, in characters. */
  readonly size: number;
  /** As performance.now(). */
  readonly startedAt: number;
  /** Whether it has been logged as far slower than usual. */
  saidSlow = false;
  readonly #logger: Logger;
  readonly #policy: RetryPolicy;
  readonly #holds: Holds;
  #log: Logger | undefined;
  #controller: AbortController | undefined;
  #aborted: PieceworkError | undefined;
  #fate: 'wanted' | 'lost' | 'abandoned' = 'wanted';
  #progress: number | undefined;
  #report: ((n: number) => void) | undefined;
  #retryAfterMs: number | undefined;
  readonly #left: string;
  /** The checkpoint of this attempt; made when it is first set. */
  kept: Checkpoint | undefined;
  #keep: ((value: unknown) => void) | undefined;
  /** Made when the handler first says what it used. */
  used: Used | undefined;
  #ended = false;
  /** When the time of the attempt is up, as performance.now(); 0: never. */
  #endsAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #onEnded: (() => void)[] | undefined;
  /** A hold is in force before the sub-request is given back, or it would be started again at once. */
  #holding: Promise<unknown> | undefined;
  #answer: Settlement | undefined;
  #onAnswer: ((answer: Settlement) => void) | undefined;
  #settled: Promise<Settlement> | undefined;
  /** Of this run, until it has ended; undefined if it is not traced. */
  #span: RunSpan | undefined;

  constructor(
    requestId: string,
    { entry, index, tries, crashes, checkpoint = '', payload }: Entry,
    startedAt: number,
    policy: RetryPolicy,
    parts: { readonly logger: Logger; readonly holds: Holds },
  ) {
    this.requestId = requestId;
    this.startedAt = startedAt;
    this.entry = entry;
    this.index = index;
    this.attempt = tries + 1;
    this.crashes = crashes;
    this.size = payload.length;
    this.#logger = parts.logger;
    this.#policy = policy;
    this.#holds = parts.holds;
    this.#left = checkpoint;
  }

  get signal(): AbortSignal {
    // Made when it is first read: most handlers are short and never read it.
    this.#controller ??= new AbortController();
    if (this.#aborted) this.#controller.abort(this.#aborted);
    return this.#controller.signal;
  }

  get log(): Logger {
    this.#log ??= this.#logger.child({ requestId: this.requestId, index: this.index });
    return this.#log;
  }

  // A property, so that a handler may take it out of its context.
  get progress(): (n: number) => void {
    this.#report ??= (n) => {
      if (typeof n !== 'number') throw new InvalidOptionError('progress', n, 'a number');
      if (Number.isFinite(n)) this.#progress = n;
    };
    return this.#report;
  }

  // Properties too, for the same reason, but made anew: they are seldom read.
  get retryAfter(): (ms: number) => void {
    return (ms) => {
      checkOption('retryAfter', ms, DELAY);
      this.#retryAfterMs = ms;
    };
  }

  get holdRequest(): (ms: number) => HeldError {
    return (ms) => this.#hold('request', ms);
  }

  get holdQueue(): (ms: number) => HeldError {
    return (ms) => this.#hold('queue', ms);
  }

  get checkpoint(): (value: unknown) => void {
    this.#keep ??= (value) => {
      this.kept ??= new Checkpoint();
      this.kept.set(value);
    };
    return this.#keep;
  }

  get checkpointed(): unknown {
    return decode(this.#left);
  }

  get usage(): (amounts: Readonly<Record<string, number>>) => void {
    return (amounts) => {
      this.used ??= new Used();
      this.used.add(amounts);
    };
  }

  /** What it has cost so far. `attempts`: 0 when it does not count as an attempt. */
  costText(attempts: 0 | 1): string {
    return costText(performance.now() - this.startedAt, attempts, this.used?.sums);
  }

  #hold(what: keyof Holds, ms: number): HeldError {
    checkOption(what === 'queue' ? 'holdQueue' : 'holdRequest', ms, HOLD);
    const sent = this.#holds[what](ms).catch((err: unknown) => {
      this.log.warn({ err }, `the ${what} could not be held`);
    });
    this.#holding = Promise.all([this.#holding, sent]);
    return new HeldError(what === 'queue' ? 'the queue' : `request ${this.requestId}`, ms);
  }

  /** What was reported since the last call, for the next renewal. */
  takeProgress(): number | undefined {
    const n = this.#progress;
    this.#progress = undefined;
    return n;
  }

  /** This report was not stored: it counts until the handler reports again. */
  putBackProgress(n: number): void {
    this.#progress ??= n;
  }

  /** Asks the handler to stop. 'lost': a success still counts. 'abandoned': nothing does. */
  abort(fate: 'lost' | 'abandoned', why: string): void {
    if (this.#fate !== 'abandoned') this.#fate = fate;
    this.#aborted ??= new AbortError(`sub-request ${this.index} of ${this.requestId}`, why);
    this.#controller?.abort(this.#aborted);
  }

  /**
   * Runs the handler, once. When it has ended, and never within this call, `onEnd` gets the outcome to report, or
   * none. If its time is up before that, `onTimeout` gets the outcome, and `onEnd` none. Creates no promise beside
   * the handler's own, because this runs for each sub-request.
   */
  run(
    handler: Run,
    payload: string,
    onEnd: (attempt: Attempt, outcome: Outcome | undefined) => void,
    onTimeout: (attempt: Attempt, outcome: Outcome) => void,
  ): void {
    const end = (outcome: Outcome | undefined) => {
      this.#ended = true;
      clearTimeout(this.#timer);
      // What failed or timed out has ended its span already.
      if (this.#span) this.#endSpan(outcome ? 'succeeded' : 'ignored');
      onEnd(this, outcome);
      for (const resolve of this.#onEnded ?? []) resolve();
    };
    const { timeoutMs } = this.#policy;
    if (timeoutMs > 0) {
      this.#endsAt = performance.now() + timeoutMs;
      this.#timer = setTimeout(() => this.#timeOut(onTimeout), timeoutMs).unref();
    }
    const succeeded = (result: unknown) => end(this.#succeeded(result));
    const threw = (error: unknown) => {
      const failed = () => end(this.#failed(error));
      if (this.#holding) void this.#holding.then(failed);
      else failed();
    };
    try {
      // Not by its own `then`: the handler may have returned a promise with another `then`.
      Promise.prototype.then.call(this.#begin(handler, payload), succeeded, threw);
    } catch (error) {
      // cure: an answer that cannot be awaited fails its sub-request
      Promise.reject(error).catch(threw);
    }
  }

  /** Resolves when the handler has ended. */
  get ended(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEnded ??= [];
      this.#onEnded.push(resolve);
    });
  }

  get settled(): Promise<Settlement> {
    // Made when it is first read, as the signal is.
    this.#settled ??= new Promise((resolve) => {
      if (this.#answer) resolve(this.#answer);
      else this.#onAnswer = resolve;
    });
    return this.#settled;
  }

  /** What became of this attempt; the first call counts. */
  notify(answer: Settlement): void {
    this.#answer ??= answer;
    this.#onAnswer?.(this.#answer);
  }

  #begin(handler: Run, payload: string): Promise<unknown> {
    try {
      const span = this.#policy.runs?.begin(this);
      this.#span = span;
      const { jsonText } = this.#policy;
      const result = span
        ? span.within(() => handler(decode(payload, jsonText) as never, this))
        : handler(decode(payload, jsonText) as never, this);
      return Promise.resolve(result);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #endSpan(how: RunEnd, error?: unknown): void {
    const span = this.#span;
    this.#span = undefined;
    span?.end(how, error);
  }

  #timeOut(onTimeout: (attempt: Attempt, outcome: Outcome) => void): void {
    // Its outcome is not wanted any more, or another worker may have the sub-request.
    if (this.#fate !== 'wanted') return;
    const error = this.#late();
    const outcome = this.#failed(error);
    this.#fate = 'abandoned';
    if (outcome) onTimeout(this, outcome);
    this.#aborted = error;
    this.#controller?.abort(error);
  }

  #late(): TimeoutError {
    const which = `attempt ${this.attempt} of sub-request ${this.index} of ${this.requestId}`;
    return new TimeoutError(which, this.#policy.timeoutMs);
  }

  #succeeded(result: unknown): Outcome | undefined {
    if (this.#fate === 'abandoned') return undefined;
    // The timer may not have run yet: the handler itself blocked the event loop.
    if (this.#endsAt > 0 && performance.now() >= this.#endsAt) return this.#failed(this.#late());
    try {
      const value = encodeResult(result, this.#policy.maxResultBytes);
      const timing = this.#timing;
      return {
        entry: this.entry,
        kind: 's',
        value: timing ? withTiming(value, timing) : value,
        cost: this.costText(1),
      };
    } catch (error) {
      return this.#failed(error);
    }
  }

  get #timing(): Timing | undefined {
    const { timedBy: worker } = this.#policy;
    if (worker === undefined) return undefined;
    const durationMs = Math.round(performance.now() - this.startedAt);
    return { startedAt: Date.now() - durationMs, durationMs, attempt: this.attempt, worker };
  }

  #failed(error: unknown): Outcome | undefined {
    const { entry } = this;
    if (this.#fate === 'abandoned') return undefined;
    const counts = !(isThrown(error, HeldError) || isThrown(error, NotAskedFor));
    if (this.#fate === 'lost' || !counts) {
      if (this.#span) this.#endSpan('returned', counts ? error : undefined);
      return { entry, kind: 'b', cost: this.costText(0) };
    }
    const delayMs = this.#policy.delayMs(error, this, this.#retryAfterMs);
    if (this.#span)
      this.#endSpan(this.#policy.isFinal(this.attempt, delayMs) ? 'failed' : 'retried', error);
    return {
      entry,
      kind: 'f',
      value: encodeError(error, this.#timing),
      delayMs,
      payload: this.size,
      cost: this.costText(1),
    };
  }
}
