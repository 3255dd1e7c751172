import { afterReading, ConnectionError } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Events } from './events.js';

/** After how long a call that is not answered, or sent again and again, is reported, in ms. */
const STALL_MS = 5_000;
/** Most requests that one line names. */
const NAMED = 10;

/** A call that is under way, with all its repeats. */
export interface Insisted {
  readonly requestId: string;
  /** As performance.now(). */
  readonly since: number;
  /** Why it was not answered last; undefined: it has not failed yet. */
  why: unknown;
  reported: boolean;
}

/**
 * Calls that a worker sends again until they are answered, however long that takes: for minutes, while a hash slot
 * is on its way to another server, or no server has it. Calls that take long are reported in one line and one
 * `error` event for all that are new, and by `health` as long as they last.
 */
export class Stalls {
  readonly #logger: Pick<Logger, 'warn' | 'info'>;
  readonly #events: Pick<Events, 'emitError' | 'measuring'>;
  readonly #stallMs: number;
  readonly #calls = new Set<Insisted>();
  /** Of calls that were reported: how many have ended by now, and how long the longest took. */
  #ended = 0;
  #longestMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    logger: Pick<Logger, 'warn' | 'info'>,
    events: Pick<Events, 'emitError' | 'measuring'>,
    stallMs = STALL_MS,
  ) {
    this.#logger = logger;
    this.#events = events;
    this.#stallMs = stallMs;
  }

  /** The calls that stall now, in words; '' when none does. */
  get said(): string {
    const stalled = this.#stalled();
    const [first] = stalled;
    if (!first) return '';
    const seconds = Math.round((performance.now() - first.since) / 1_000);
    const requests = new Set(stalled.map(({ requestId }) => requestId)).size;
    const whose = requests === 1 ? first.requestId : `${requests} requests`;
    return `calls of ${whose} have not been answered for ${seconds} s: ${reasonOf(first).message}`;
  }

  begin(requestId: string): Insisted {
    const call = { requestId, since: performance.now(), why: undefined, reported: false };
    this.#calls.add(call);
    // One timer, however many calls there are; it is not set again when there are none.
    if (!this.#timer) this.#checkIn(this.#stallMs);
    return call;
  }

  end(call: Insisted): void {
    this.#calls.delete(call);
    if (!call.reported) return;
    this.#ended += 1;
    this.#longestMs = Math.max(this.#longestMs, performance.now() - call.since);
    if ([...this.#calls].some(({ reported }) => reported)) return;
    // One line for all, as there was one when they stalled.
    const about = { calls: this.#ended, stalledMs: Math.round(this.#longestMs) };
    this.#logger.info(about, 'the calls that stalled have ended');
    this.#ended = 0;
    this.#longestMs = 0;
  }

  /** Reports nothing more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#calls.clear();
  }

  /** The oldest first: they are in the order of their beginning. */
  #stalled(): Insisted[] {
    const before = performance.now() - this.#stallMs;
    return [...this.#calls].filter(({ since }) => since <= before);
  }

  #check(): void {
    this.#timer = undefined;
    const fresh = this.#stalled().filter(({ reported }) => !reported);
    for (const call of fresh) call.reported = true;
    const [first] = fresh;
    if (first) {
      const requestIds = [...new Set(fresh.map(({ requestId }) => requestId))];
      const about = { err: reasonOf(first), calls: fresh.length, requests: requestIds.length };
      this.#logger.warn(
        { ...about, requestIds: requestIds.slice(0, NAMED) },
        'calls stall; sending them again until they are answered',
      );
      this.#events.emitError(reasonOf(first), { requestId: first.requestId });
      this.#events.measuring.meter?.stalled(fresh.length);
    }
    const [oldest] = [...this.#calls].filter(({ reported }) => !reported);
    if (!oldest) return;
    this.#checkIn(Math.max(50, oldest.since + this.#stallMs - performance.now()));
  }

  /** After what has arrived by then is read: a handler that blocks the event loop delays answers. */
  #checkIn(ms: number): void {
    this.#timer = afterReading(ms, () => this.#check()).unref();
  }
}

function reasonOf({ why }: Insisted): Error {
  return why instanceof Error
    ? why
    : new ConnectionError('no answer so far: see that Redis runs and answers');
}
