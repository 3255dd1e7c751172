import { decodeError, type Entry, type KeptError, type Outcome } from '@piecework/protocol';
import type { Logger } from 'pino';
import type { Attempt } from '../handler/attempt.js';
import { type Flood, isLogged } from './flood.js';

/** What lines of one kind have in common. */
export interface Where {
  readonly queue: string;
  /** Left out when the request has none. */
  readonly task?: string;
}

/** What came of the attempts that one session reported. */
interface Tally {
  succeeded: number;
  failed: number;
  retried: number;
  returned: number;
}

/**
 * What happens to one request on this worker, for the log: attempts that fail, that are made again, that run far
 * longer than usual. Of payloads and results it is told nothing. The fields are those of docs/operations.md.
 */
export class RunLog {
  readonly #requestId: string;
  readonly #logger: Logger;
  readonly #flood: Flood;
  readonly #where: () => Where;
  readonly #tally: Tally = { succeeded: 0, failed: 0, retried: 0, returned: 0 };
  #begun = false;

  constructor(requestId: string, logger: Logger, flood: Flood, where: () => Where) {
    this.#requestId = requestId;
    this.#logger = logger;
    this.#flood = flood;
    this.#where = where;
  }

  /** It works, unless it did already. */
  begun(permits: number): void {
    if (this.#begun || !isLogged(this.#logger, 'debug')) return;
    this.#begun = true;
    this.#say('debug', 'request begun here', () => ({ permits }));
  }

  /** Nothing of it is held here any more. */
  ended(): void {
    if (this.#begun) this.#say('debug', 'request left here', () => this.#tally);
    this.#begun = false;
  }

  started(running: Attempt): void {
    const { attempt, crashes } = running;
    if (attempt > 1 || crashes > 0)
      this.#say('debug', 'sub-request runs again', () => ({ ...about(running), crashes }));
  }

  /** `isFinal`: of a failure, whether no attempt follows. */
  reported(running: Attempt, outcome: Outcome, isFinal: boolean): void {
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
      ...about(running),
      ...ranFor(running),
      ...(isFinal ? {} : { delayMs: outcome.delayMs }),
      err: shownAs(kept),
    });
    this.#say(level, what, fields, { error: kept.name });
  }

  overTime(running: Attempt): void {
    const what = 'attempt over its time; its handler is told to stop';
    this.#say('info', what, () => ({ ...about(running), ...ranFor(running) }));
  }

  goesOn(running: Attempt): void {
    const what = 'handler goes on although it was told to stop, and keeps its slot';
    this.#say('warn', what, () => ({ ...about(running), ...ranFor(running) }));
  }

  passedOn(suspects: readonly Entry[], waitedMs: number): void {
    const what = 'suspects go back: handlers beside them did not end';
    const indexes = suspects.slice(0, 10).map(({ index }) => index);
    this.#say('info', what, () => ({ count: suspects.length, indexes, waitedMs }));
  }

  slow(running: Attempt, medianMs: number | undefined): void {
    const median = medianMs === undefined ? {} : { medianMs: Math.round(medianMs) };
    const more = () => ({ ...about(running), ...ranFor(running), ...median });
    this.#say('warn', 'handler runs far longer than usual', more);
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

const ranFor = (running: Attempt) => ({ ranMs: Math.round(performance.now() - running.startedAt) });

/** For a logger: it has the class that was thrown, which pino asks of `constructor` first, and no stack of ours. */
function shownAs(kept: KeptError): Error {
  const stack = kept.stack ?? `${kept.name}: ${kept.message}`;
  const error = Object.assign(new Error(kept.message), kept, { stack });
  return Object.defineProperty(error, 'constructor', { value: undefined });
}
