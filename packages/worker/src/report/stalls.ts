import { ConnectionError } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Events } from './events.js';

/** After how long a call that is not answered, or sent again and again, is told of, in ms. */
const STALL_MS = 5_000;
/** Most requests that one line names. */
const NAMED = 10;

/** A call that is under way, with all its repeats. */
export interface Insisted {
  readonly requestId: string;
  /** As performance.now(). */
  readonly since: number;
  /** Why it was not answered last; undefined: nothing was heard of it yet. */
  why: unknown;
  told: boolean;
}

/**
 * Calls that a worker does not give up, as a hash slot that is on its way for minutes, or that no server
 * holds, would have it do: work that looks held although nobody can say why. Those that take long are told
 * of in one line and one `error` event for all that are new, and by `health` as long as they last.
 */
export class Stalls {
  readonly #logger: Pick<Logger, 'warn' | 'info'>;
  readonly #events: Pick<Events, 'tellError'>;
  readonly #stallMs: number;
  readonly #calls = new Set<Insisted>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    logger: Pick<Logger, 'warn' | 'info'>,
    events: Pick<Events, 'tellError'>,
    stallMs = STALL_MS,
  ) {
    this.#logger = logger;
    this.#events = events;
    this.#stallMs = stallMs;
  }

  /** What is stalled now, in words; '' when nothing is. */
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
    const call = { requestId, since: performance.now(), why: undefined, told: false };
    this.#calls.add(call);
    // One timer, however many calls there are: it looks, and goes when there are none.
    if (!this.#timer) this.#lookIn(this.#stallMs);
    return call;
  }

  end(call: Insisted): void {
    this.#calls.delete(call);
    if (!call.told) return;
    const stalledMs = Math.round(performance.now() - call.since);
    this.#logger.info({ requestId: call.requestId, stalledMs }, 'a call that stalled has ended');
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#calls.clear();
  }

  /** The oldest first: they stand in the order of their beginning. */
  #stalled(): Insisted[] {
    const before = performance.now() - this.#stallMs;
    return [...this.#calls].filter(({ since }) => since <= before);
  }

  #look(): void {
    this.#timer = undefined;
    const fresh = this.#stalled().filter(({ told }) => !told);
    for (const call of fresh) call.told = true;
    const [first] = fresh;
    if (first) {
      const requestIds = [...new Set(fresh.map(({ requestId }) => requestId))];
      const about = { err: reasonOf(first), calls: fresh.length, requests: requestIds.length };
      this.#logger.warn(
        { ...about, requestIds: requestIds.slice(0, NAMED) },
        'calls stall; sending them again until they are answered',
      );
      this.#events.tellError(reasonOf(first), { requestId: first.requestId });
    }
    const [oldest] = [...this.#calls].filter(({ told }) => !told);
    if (!oldest) return;
    this.#lookIn(Math.max(50, oldest.since + this.#stallMs - performance.now()));
  }

  /** Behind what has arrived by then: a handler that holds up the event loop keeps answers from being read. */
  #lookIn(ms: number): void {
    this.#timer = setTimeout(() => setImmediate(() => this.#look()), ms).unref();
  }
}

function reasonOf({ why }: Insisted): Error {
  return why instanceof Error ? why : new ConnectionError('no answer so far');
}
