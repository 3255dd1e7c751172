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
import { type Moment, moment } from './options.js';
import type { TakenItem } from './taken-item.js';

/** A length of time from now, by the clock of Redis. */
export interface Delay {
  /** In ms. 0 to a year. */
  readonly delayMs: number;
}

export const delayOptions: OptionTable = { delayMs: option.ms(0, LONGEST_DELAY_MS) };

const isDelay = (when: unknown): when is Delay =>
  typeof when === 'object' && when !== null && !(when instanceof Date);

/** The time as an argument of the scripts. @throws InvalidOptionError */
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
 * An item that this consumer has taken. Settle it by `done`, `retry` or `discard`; the first of them that succeeds
 * counts. Each returns whether it counted. False: the lease has ended and another consumer has taken the item, or it is
 * settled already; nothing was changed then.
 * They throw IndeterminateError, ConnectionError or ServerError, and may be called again after that.
 */
export class RetryItem<T> {
  readonly key: string;
  /** When it was put, by the server's clock, in ms since 1970. */
  readonly created: number;
  /** When it was due. */
  readonly at: number;
  /** End of the lease as of the take; it is renewed since. */
  readonly leasedUntil: number;
  /** How often it was put back as failed. */
  readonly numFailures: number;
  readonly payload: T;
  /** Aborts, with a LeaseLostError, when the lease ends by this process's clock or another consumer has the item. */
  readonly signal: AbortSignal;
  readonly #item: TakenItem;
  readonly #settle: (outcome: TimedOutcome) => Promise<TimedVerdict>;
  #settled: Promise<boolean> | undefined;

  /** @internal */
  constructor(item: TakenItem, settle: (outcome: TimedOutcome) => Promise<TimedVerdict>) {
    const { taken } = item;
    this.key = taken.key;
    this.created = taken.created;
    this.at = taken.at;
    this.leasedUntil = item.lockedUntil;
    this.numFailures = taken.numFailures;
    this.payload = decode(taken.payload) as T;
    this.signal = item.signal;
    this.#item = item;
    this.#settle = settle;
  }

  /** It succeeded: removes it. */
  done(): Promise<boolean> {
    return this.#once('done', '');
  }

  /** It failed: puts it back, due at a time or after a delay. @throws InvalidOptionError */
  async retry(when: Moment | Delay): Promise<boolean> {
    return this.#once('retry', timeOf(when));
  }

  /** It failed for good: moves it to the failures, with a text or the error that was thrown. */
  discard(reason: unknown = ''): Promise<boolean> {
    return this.#once('discard', messageOf(reason));
  }

  async #once(verb: TimedOutcome['verb'], value: string | number): Promise<boolean> {
    if (this.#settled) return this.#settled.then(() => false);
    const settled = this.#send(verb, value);
    this.#settled = settled;
    try {
      return await settled;
    } catch (error) {
      this.#settled = undefined;
      throw error;
    }
  }

  async #send(verb: TimedOutcome['verb'], value: string | number): Promise<boolean> {
    const { taken, token } = this.#item;
    this.#item.busy = true;
    try {
      const payloadLength = verb === 'done' ? 0 : taken.payload.length;
      const verdict = await this.#settle({ key: taken.key, token, verb, value, payloadLength });
      this.#item.end();
      return verdict === 'ok';
    } finally {
      this.#item.busy = false;
    }
  }
}

const MOST_CHARACTERS = 1_024;

function messageOf(reason: unknown): string {
  if (typeof reason === 'string') return reason.slice(0, MOST_CHARACTERS);
  const { name, message } = readThrown(reason);
  return `${name}: ${message}`;
}
