import {
  AbortError,
  decode,
  type Entry,
  encodeError,
  encodeResult,
  type Outcome,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Handler, HandlerContext } from './handler.js';

/**
 * One sub-request while its handler runs. It ends in one outcome, or in none: a worker that lost
 * the lease still reports a success (it counts if nobody was faster) but never a failure, and what
 * was given back is not reported at all.
 */
export class Running implements HandlerContext {
  readonly requestId: string;
  readonly index: number;
  readonly attempt: number;
  readonly entry: string;
  readonly #logger: Logger;
  #controller: AbortController | undefined;
  #aborted: AbortError | undefined;
  #fate: 'wanted' | 'lost' | 'abandoned' = 'wanted';
  #progress: number | undefined;

  constructor(requestId: string, { entry, index, tries }: Entry, logger: Logger) {
    this.requestId = requestId;
    this.entry = entry;
    this.index = index;
    this.attempt = tries + 1;
    this.#logger = logger;
  }

  get signal(): AbortSignal {
    // Made when first asked for: most handlers are short and never look.
    this.#controller ??= new AbortController();
    if (this.#aborted) this.#controller.abort(this.#aborted);
    return this.#controller.signal;
  }

  get log(): Logger {
    return this.#logger.child({ requestId: this.requestId, index: this.index });
  }

  progress(n: number): void {
    if (Number.isFinite(n)) this.#progress = n;
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

  /** Runs the handler; never rejects. Answers what to report, or nothing. */
  async run(
    handler: Handler,
    payload: string,
    maxResultBytes: number,
  ): Promise<Outcome | undefined> {
    const { entry } = this;
    try {
      const result = await handler(decode(payload) as never, this);
      const value = encodeResult(result, maxResultBytes);
      return this.#fate === 'abandoned' ? undefined : { entry, kind: 's', value };
    } catch (error) {
      if (this.#fate !== 'wanted') return undefined;
      return { entry, kind: 'f', value: encodeError(error), delayMs: 0 };
    }
  }
}
