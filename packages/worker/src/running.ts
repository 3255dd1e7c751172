import {
  AbortError,
  checkOption,
  decode,
  type Entry,
  encodeError,
  encodeResult,
  HeldError,
  type Outcome,
  option,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Handler, HandlerContext } from './handler.js';

/** How long a handler may hold the queue back. */
const HOLD = option.ms(1, 31_536_000_000);

/**
 * One sub-request while its handler runs. It ends in one outcome, or in none: a worker that lost
 * the lease still reports a success (it counts if nobody was faster), never a failure: it gives back
 * instead, which counts for nothing when somebody else has it. What was given back before is not
 * reported at all.
 */
export class Running implements HandlerContext {
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  readonly crashes: number;
  readonly entry: string;
  readonly #logger: Logger;
  #log: Logger | undefined;
  #controller: AbortController | undefined;
  #aborted: AbortError | undefined;
  #fate: 'wanted' | 'lost' | 'abandoned' = 'wanted';
  #progress: number | undefined;
  #report: ((n: number) => void) | undefined;
  #over = false;
  #onEnded: (() => void)[] | undefined;
  /** What a handler holds back is held before it is given back, or it would come back at once. */
  readonly #hold: (ms: number) => Promise<void>;
  #holding: Promise<unknown> | undefined;

  constructor(
    requestId: string,
    { entry, index, tries, crashes }: Entry,
    logger: Logger,
    hold: (ms: number) => Promise<void>,
  ) {
    this.requestId = requestId;
    this.entry = entry;
    this.index = index;
    this.attempt = tries + 1;
    this.crashes = crashes;
    this.#logger = logger;
    this.#hold = hold;
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
      if (Number.isFinite(n)) this.#progress = n;
    };
    return this.#report;
  }

  get holdQueue(): (ms: number) => HeldError {
    return (ms) => {
      checkOption('holdQueue', ms, HOLD);
      const held = this.#hold(ms).catch((error: unknown) => {
        this.log.warn({ err: error }, 'the queue could not be held back');
      });
      this.#holding = Promise.all([this.#holding, held]);
      return new HeldError('the queue', ms);
    };
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
   * report, or nothing. No promise but the handler's own: there is one of these for each sub-request.
   */
  run(
    handler: Handler,
    payload: string,
    maxResultBytes: number,
    onEnd: (running: Running, outcome: Outcome | undefined) => void,
  ): void {
    const end = (outcome: Outcome | undefined) => {
      this.#over = true;
      onEnd(this, outcome);
      for (const tell of this.#onEnded ?? []) tell();
    };
    this.#begin(handler, payload).then(
      (result) => end(this.#succeeded(result, maxResultBytes)),
      (error: unknown) => {
        const outcome = () => end(this.#failed(error));
        if (this.#holding && error instanceof HeldError) void this.#holding.then(outcome);
        else outcome();
      },
    );
  }

  /** Resolves when the handler ended. */
  get ended(): Promise<void> {
    if (this.#over) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEnded ??= [];
      this.#onEnded.push(resolve);
    });
  }

  #begin(handler: Handler, payload: string): Promise<unknown> {
    try {
      return Promise.resolve(handler(decode(payload) as never, this));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #succeeded(result: unknown, maxResultBytes: number): Outcome | undefined {
    if (this.#fate === 'abandoned') return undefined;
    try {
      return { entry: this.entry, kind: 's', value: encodeResult(result, maxResultBytes) };
    } catch (error) {
      return this.#failed(error);
    }
  }

  #failed(thrown: unknown): Outcome | undefined {
    const { entry } = this;
    if (this.#fate === 'abandoned') return undefined;
    if (this.#fate === 'lost' || thrown instanceof HeldError) return { entry, kind: 'b' };
    return { entry, kind: 'f', value: encodeThrown(thrown), delayMs: 0 };
  }
}

/** What was thrown may be anything, also something that throws when it is looked at. */
function encodeThrown(thrown: unknown): string {
  try {
    return encodeError(thrown);
  } catch {
    return encodeError(new Error('the handler threw something that cannot be put into words'));
  }
}
