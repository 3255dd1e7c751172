import {
  checkOption,
  checkOptions,
  decode,
  InvalidOptionError,
  LONGEST_DELAY_MS,
  type OptionTable,
  option,
  readThrown,
  type TimedOutcome,
  type TimedVerdict,
} from '@piecework/protocol';
import type { Holding } from './holding.js';
import { type Moment, moment } from './options.js';

/** A time from now on, by the clock of Redis. */
export interface Delay {
  /** In ms. 0 to a year. */
  readonly delayMs: number;
}

export const delayOptions: OptionTable = { delayMs: option.ms(0, LONGEST_DELAY_MS) };

const isDelay = (when: unknown): when is Delay =>
  typeof when === 'object' && when !== null && !(when instanceof Date);

/** As the scripts take it. @throws InvalidOptionError */
export function timeOf(when: Moment | Delay): number | `+${number}` {
  if (!isDelay(when)) {
    checkOption('at', when, moment);
    return Number(when);
  }
  const { delayMs } = checkOptions<Delay>(delayOptions, when);
  if (delayMs === undefined) throw new InvalidOptionError('delayMs', delayMs, 'a time in ms');
  return `+${delayMs}`;
}

/**
 * A task that is this consumer's until it is settled, by `done`, `retry` or `discard`: the first that
 * succeeds. Each answers whether it counted; false: the lease was over and somebody else has taken the
 * task, or it is settled, and nothing was changed.
 * They throw IndeterminateError, ConnectionError, ServerError and may be called again then.
 */
export class RetryTask<T> {
  readonly key: string;
  /** When it was put, server time in ms. */
  readonly created: number;
  /** When it was due. */
  readonly at: number;
  /** When its lease ends if nobody renews it, as it was when it was taken. */
  readonly leasedUntil: number;
  /** How often it was put back as failed. */
  readonly numFailures: number;
  readonly payload: T;
  /** Aborts, with a LeaseLostError, when the lease ends by our own clock or somebody else has the task. */
  readonly signal: AbortSignal;
  readonly #holding: Holding;
  readonly #settle: (outcome: TimedOutcome) => Promise<TimedVerdict>;
  #settled: Promise<boolean> | undefined;

  constructor(holding: Holding, settle: (outcome: TimedOutcome) => Promise<TimedVerdict>) {
    const { taken } = holding;
    this.key = taken.key;
    this.created = taken.created;
    this.at = taken.at;
    this.leasedUntil = holding.lockedUntil;
    this.numFailures = taken.numFailures;
    this.payload = decode(taken.payload) as T;
    this.signal = holding.signal;
    this.#holding = holding;
    this.#settle = settle;
  }

  /** It succeeded, and is gone. */
  done(): Promise<boolean> {
    return this.#once('done', '');
  }

  /** It failed, and comes again at a time, or after a delay. @throws InvalidOptionError */
  async retry(when: Moment | Delay): Promise<boolean> {
    return this.#once('retry', timeOf(when));
  }

  /** It failed for good, and goes to the failures, with a text or what was thrown. */
  discard(reason: unknown = ''): Promise<boolean> {
    return this.#once('discard', messageOf(reason));
  }

  async #once(verb: TimedOutcome['verb'], value: string | number): Promise<boolean> {
    if (this.#settled) return this.#settled.then(() => false);
    const settled = this.#tell(verb, value);
    this.#settled = settled;
    try {
      return await settled;
    } catch (error) {
      this.#settled = undefined;
      throw error;
    }
  }

  async #tell(verb: TimedOutcome['verb'], value: string | number): Promise<boolean> {
    const { taken, token } = this.#holding;
    this.#holding.busy = true;
    try {
      const payloadLength = verb === 'done' ? 0 : taken.payload.length;
      const verdict = await this.#settle({ key: taken.key, token, verb, value, payloadLength });
      this.#holding.end();
      return verdict === 'ok';
    } finally {
      this.#holding.busy = false;
    }
  }
}

const MOST_CHARACTERS = 1_024;

function messageOf(reason: unknown): string {
  if (typeof reason === 'string') return reason.slice(0, MOST_CHARACTERS);
  const { name, message } = readThrown(reason);
  return `${name}: ${message}`;
}
