import {
  AbortError,
  decode,
  type Entry,
  encodeError,
  encodeResult,
  type Outcome,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import { Checkpoint } from './checkpoints.js';
import type { Handler, HandlerContext } from './handler.js';

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
  readonly #left: string;
  /** What this attempt leaves to the next; made when it first does. */
  kept: Checkpoint | undefined;
  #keep: ((value: unknown) => void) | undefined;
  #over = false;
  #onEnded: (() => void)[] | undefined;

  constructor(
    requestId: string,
    { entry, index, tries, crashes, checkpoint = '' }: Entry,
    logger: Logger,
  ) {
    this.requestId = requestId;
    this.entry = entry;
    this.index = index;
    this.attempt = tries + 1;
    this.crashes = crashes;
    this.#left = checkpoint;
    this.#logger = logger;
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
      (error: unknown) => end(this.#failed(error)),
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

  #failed(error: unknown): Outcome | undefined {
    const { entry } = this;
    if (this.#fate === 'abandoned') return undefined;
    if (this.#fate === 'lost') return { entry, kind: 'b' };
    return { entry, kind: 'f', value: encodeThrown(error), delayMs: 0 };
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
