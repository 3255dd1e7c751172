import {
  decodeError,
  type Entry,
  type KeptError,
  type Outcome,
  type RequestOutcome,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Attempt } from '../handler/attempt.js';
import { type Flood, isLogged } from './flood.js';
import type { AttemptEnd, Measuring, TaskMeter } from './meter.js';

/** Fields that lines of one kind share. */
export interface Where {
  readonly queue: string;
  /** Left out when the request has none. */
  readonly task?: string;
}

/** How the attempts ended that one session reported. */
interface Tally {
  succeeded: number;
  failed: number;
  retried: number;
  returned: number;
}

/**
 * Logs and measures what happens to one request on this worker: attempts that fail, that are made again, that run far
 * longer than usual. It never logs payloads and results. docs/logs.md lists the lines, docs/metrics.md what is measured.
 */
export class RunLog {
  readonly #requestId: string;
  readonly #logger: Logger;
  readonly #flood: Flood;
  readonly #where: () => Where;
  readonly #measuring: Measuring;
  readonly #generation: number;
  readonly #tally: Tally = { succeeded: 0, failed: 0, retried: 0, returned: 0 };
  #begun = false;
  #taskMeter: TaskMeter | undefined;

  /** `generation`: of the request, which is the time of its creation. */
  constructor(
    { id, generation }: { readonly id: string; readonly generation: number },
    logger: Logger,
    flood: Flood,
    measuring: Measuring,
    where: () => Where,
  ) {
    this.#requestId = id;
    this.#generation = generation;
    this.#measuring = measuring;
    this.#logger = logger;
    this.#flood = flood;
    this.#where = where;
  }

  /** The session begins to work, unless it did before. */
  begun(permits: number): void {
    if (this.#begun || !isLogged(this.#logger, 'debug')) return;
    this.#begun = true;
    this.#say('debug', 'request begun here', () => ({ permits }));
  }

  /** The session has ended. */
  ended(): void {
    if (this.#begun) this.#say('debug', 'request left here', () => this.#tally);
    this.#begun = false;
  }

  started(attempt: Attempt): void {
    const { crashes } = attempt;
    if (this.#measuring.meter !== undefined && attempt.attempt === 1 && crashes === 0) {
      const waitedMs = this.#measuring.msSince(this.#generation, attempt.startedAt);
      this.#meter?.started(waitedMs);
    }
    if (attempt.attempt > 1 || crashes > 0)
      this.#say('debug', 'sub-request runs again', () => ({ ...about(attempt), crashes }));
  }

  /** `isFinal`: of a failure, whether no attempt follows. */
  reported(attempt: Attempt, outcome: Outcome, isFinal: boolean): void {
    if (this.#measuring.meter !== undefined) this.#measure(attempt, outcome, isFinal);
    if (outcome.kind !== 'f') {
      this.#tally[outcome.kind === 's' ? 'succeeded' : 'returned'] += 1;
      return;
    }
    this.#tally[isFinal ? 'failed' : 'retried'] += 1;
    const level = isFinal ? 'warn' : 'debug';
    if (!isLogged(this.#logger, level)) return;
    const kept = decodeError(outcome.value);
    const what = isFinal ? 'sub-request failed' : 'attempt failed, another follows';
    const fields = () => ({
      ...about(attempt),
      ...ranFor(attempt),
      ...(isFinal ? {} : { delayMs: outcome.delayMs }),
      err: shownAs(kept),
    });
    this.#say(level, what, fields, { error: kept.name });
  }

  /** The server has answered a settle that was sent at `sentAt`, as performance.now(). */
  settled(sentAt: number): void {
    this.#measuring.meter?.settled(performance.now() - sentAt);
  }

  /** A report of this worker has completed the request. */
  completed(outcome: RequestOutcome): void {
    this.#meter?.completed(outcome, this.#measuring.msSince(this.#generation));
  }

  overTime(attempt: Attempt): void {
    const what = 'attempt over its time; its handler is asked to stop';
    this.#say('debug', what, () => ({ ...about(attempt), ...ranFor(attempt) }));
  }

  continues(attempt: Attempt): void {
    const what = 'handler continues although it was asked to stop, and keeps its slot';
    this.#say('warn', what, () => ({ ...about(attempt), ...ranFor(attempt) }));
  }

  passedOn(suspects: readonly Entry[], waitedMs: number): void {
    const what = 'suspects go back: handlers beside them did not end';
    const indexes = suspects.slice(0, 10).map(({ index }) => index);
    this.#say('info', what, () => ({ count: suspects.length, indexes, waitedMs }));
  }

  slow(attempt: Attempt, medianMs: number | undefined): void {
    const median = medianMs === undefined ? {} : { medianMs: Math.round(medianMs) };
    const more = () => ({ ...about(attempt), ...ranFor(attempt), ...median });
    this.#say('warn', 'handler runs far longer than usual', more);
  }

  get #meter(): TaskMeter | undefined {
    this.#taskMeter ??= this.#measuring.meter?.task(this.#where().task ?? '');
    return this.#taskMeter;
  }

  #measure({ startedAt, used }: Attempt, outcome: Outcome, isFinal: boolean): void {
    const ranMs = performance.now() - startedAt;
    if (used) this.#meter?.used(used.sums);
    if (outcome.kind === 's') this.#meter?.ended(ranMs, 'succeeded');
    else if (outcome.kind === 'b') this.#meter?.ended(ranMs, 'returned');
    else {
      const end: AttemptEnd = isFinal ? 'failed' : 'retried';
      this.#meter?.ended(ranMs, end, decodeError(outcome.value).name);
    }
  }

  #say(
    level: 'debug' | 'info' | 'warn',
    what: string,
    more: () => object,
    kind: { readonly error?: string } = {},
  ): void {
    const requestId = this.#requestId;
    this.#flood.say(level, what, { ...this.#where(), ...kind }, () => ({ requestId, ...more() }));
  }
}

const about = ({ index, attempt }: Attempt) => ({ index, attempt });

const ranFor = (attempt: Attempt) => ({ ranMs: Math.round(performance.now() - attempt.startedAt) });

/** For a logger: with the class that was thrown, for which pino reads `constructor` first, and without our own stack. */
function shownAs(kept: KeptError): Error {
  const stack = kept.stack ?? `${kept.name}: ${kept.message}`;
  const error = Object.assign(new Error(kept.message), kept, { stack });
  return Object.defineProperty(error, 'constructor', { value: undefined });
}
