import {
  AbortError,
  checkOption,
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
  TimeoutError,
  type Timing,
  withTiming,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import { Checkpoint } from './checkpoints.js';
import type { PullContext, Told } from './handler.js';
import { NotAskedFor, type Run } from './handler.js';
import type { RetryPolicy } from './retry-policy.js';

const DELAY = option.ms(0, LONGEST_DELAY_MS);
/** How long a handler may hold its request, or the queue, back. */
const HOLD = option.ms(1, LONGEST_DELAY_MS);

/** What holds the request, or the queue, back for so many ms; settles when that is in force. */
export interface Holds {
  request(ms: number): Promise<void>;
  queue(ms: number): Promise<void>;
}

/**
 * One sub-request while its handler runs. It ends in one outcome, or in none: a worker that lost
 * the lease still reports a success (it counts if nobody was faster), never a failure: it gives back
 * instead, which counts for nothing when somebody else has it. What was given back before is not
 * reported at all.
 */
export class Attempt implements PullContext {
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  readonly crashes: number;
  readonly entry: string;
  /** Of its payload, in characters. */
  readonly size: number;
  /** As performance.now(). */
  readonly startedAt: number;
  /** Whether the log says that it runs far longer than usual. */
  saidSlow = false;
  readonly #logger: Logger;
  readonly #terms: RetryPolicy;
  readonly #holds: Holds;
  #log: Logger | undefined;
  #controller: AbortController | undefined;
  #aborted: PieceworkError | undefined;
  #fate: 'wanted' | 'lost' | 'abandoned' = 'wanted';
  #progress: number | undefined;
  #report: ((n: number) => void) | undefined;
  #retryAfterMs: number | undefined;
  readonly #left: string;
  /** What this attempt leaves to the next; made when it first does. */
  kept: Checkpoint | undefined;
  #keep: ((value: unknown) => void) | undefined;
  #over = false;
  /** When the attempt is over its time, by the own clock; 0: never. */
  #endsAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #onEnded: (() => void)[] | undefined;
  /** What a handler holds back is held before it is given back, or it would come back at once. */
  #holding: Promise<unknown> | undefined;
  #told: Told | undefined;
  #onTold: ((told: Told) => void) | undefined;
  #settled: Promise<Told> | undefined;

  constructor(
    requestId: string,
    { entry, index, tries, crashes, checkpoint = '', payload }: Entry,
    startedAt: number,
    terms: RetryPolicy,
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
    this.#terms = terms;
    this.#holds = parts.holds;
    this.#left = checkpoint;
  }

  get signal(): AbortSignal {
    // Made when first asked for: most handlers are short and never look.
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

  // Properties too, for the same reason, but made anew: they are seldom asked for.
  get retryAfter(): (ms: number) => void {
    return (ms) => {
      checkOption('retryAfter', ms, DELAY);
      this.#retryAfterMs = ms;
    };
  }

  get holdRequest(): (ms: number) => HeldError {
    return (ms) => this.#heldBack('request', ms);
  }

  get holdQueue(): (ms: number) => HeldError {
    return (ms) => this.#heldBack('queue', ms);
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

  #heldBack(what: keyof Holds, ms: number): HeldError {
    checkOption(what === 'queue' ? 'holdQueue' : 'holdRequest', ms, HOLD);
    const sent = this.#holds[what](ms).catch((err: unknown) => {
      this.log.warn({ err }, `the ${what} could not be held back`);
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

  /** Tells the handler to stop. 'lost': a success still counts. 'abandoned': nothing does. */
  abort(fate: 'lost' | 'abandoned', why: string): void {
    if (this.#fate !== 'abandoned') this.#fate = fate;
    this.#aborted ??= new AbortError(`sub-request ${this.index} of ${this.requestId}`, why);
    this.#controller?.abort(this.#aborted);
  }

  /**
   * Runs the handler, once. When it ended, and never within this call, `onEnd` is told what to
   * report, or nothing. If it is over its time before, `onTimeout` is told, and `onEnd` has nothing to
   * report then. No promise but the handler's own: there is one of these for each sub-request.
   */
  run(
    handler: Run,
    payload: string,
    onEnd: (running: Attempt, outcome: Outcome | undefined) => void,
    onTimeout: (running: Attempt, outcome: Outcome) => void,
  ): void {
    const end = (outcome: Outcome | undefined) => {
      this.#over = true;
      clearTimeout(this.#timer);
      onEnd(this, outcome);
      for (const tell of this.#onEnded ?? []) tell();
    };
    const { timeoutMs } = this.#terms;
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
      // Not by its own `then`: the handler may have answered a promise whose `then` is another.
      Promise.prototype.then.call(this.#begin(handler, payload), succeeded, threw);
    } catch (error) {
      Promise.reject(error).catch(threw);
    }
  }

  /** Resolves when the handler ended. */
  get ended(): Promise<void> {
    if (this.#over) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEnded ??= [];
      this.#onEnded.push(resolve);
    });
  }

  get settled(): Promise<Told> {
    // Made when first asked for, as the signal is.
    this.#settled ??= new Promise((resolve) => {
      if (this.#told) resolve(this.#told);
      else this.#onTold = resolve;
    });
    return this.#settled;
  }

  /** What became of this attempt; the first word counts. */
  tell(told: Told): void {
    this.#told ??= told;
    this.#onTold?.(this.#told);
  }

  #begin(handler: Run, payload: string): Promise<unknown> {
    try {
      return Promise.resolve(handler(decode(payload) as never, this));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #timeOut(onTimeout: (running: Attempt, outcome: Outcome) => void): void {
    // Nobody waits for it any more, or somebody else has it by now.
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
    return new TimeoutError(which, this.#terms.timeoutMs);
  }

  #succeeded(result: unknown): Outcome | undefined {
    if (this.#fate === 'abandoned') return undefined;
    // The timer may not have had its turn: the handler itself held up the event loop.
    if (this.#endsAt > 0 && performance.now() >= this.#endsAt) return this.#failed(this.#late());
    try {
      const value = encodeResult(result, this.#terms.maxResultBytes);
      const timing = this.#timing;
      return { entry: this.entry, kind: 's', value: timing ? withTiming(value, timing) : value };
    } catch (error) {
      return this.#failed(error);
    }
  }

  get #timing(): Timing | undefined {
    const { timedBy: worker } = this.#terms;
    if (worker === undefined) return undefined;
    const durationMs = Math.round(performance.now() - this.startedAt);
    return { startedAt: Date.now() - durationMs, durationMs, attempt: this.attempt, worker };
  }

  #failed(error: unknown): Outcome | undefined {
    const { entry } = this;
    if (this.#fate === 'abandoned') return undefined;
    const counts = !(isThrown(error, HeldError) || isThrown(error, NotAskedFor));
    if (this.#fate === 'lost' || !counts) return { entry, kind: 'b' };
    const delayMs = this.#terms.delayMs(error, this, this.#retryAfterMs);
    return {
      entry,
      kind: 'f',
      value: encodeError(error, this.#timing),
      delayMs,
      payload: this.size,
    };
  }
}
