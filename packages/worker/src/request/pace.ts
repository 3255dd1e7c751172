import { aheadIn, PER_PERMIT, quickIn } from '../shared/read-at-enter.js';
import type { Usual } from '../shared/usual.js';

/** About how many outcomes one settle is to carry: more would hardly make each of them cheaper. */
const COMPANY = 64;
/** Outcomes wait for others for no longer than so many times what a handler takes. */
const HANDLERS = 4;
/** While somebody follows the results, outcomes wait for others for no longer than this, in ms. */
const LIVE_MS = 4;
/** If fewer outcomes than this are expected within the delay, none waits for it. */
const LEAST_COMPANY = 0.5;
/** While no outcome waits, reading ahead pays if a round trip takes more than this part of what a handler takes. */
const GAP = 0.05;
/** How much more is read ahead than is needed on average, as handlers do not end at equal intervals. */
const RESERVE = 1.3;
/** Handlers are short if they take no longer than this on average, in ms: a slot is free soon. */
const SHORT_MS = 150;
/** Over about how many calls the round trip is averaged. */
const AVERAGED = 8;

/**
 * The pace of one session: how soon its handlers end and its calls are answered. From these follow how long an outcome
 * waits to be settled together with others, and how many sub-requests have to be read ahead so that no slot is
 * empty until the next reply (docs/decisions/0046-read-ahead.md).
 */
export class Pace {
  readonly #usual: Usual;
  readonly #lately: Usual;
  readonly #most: number;
  readonly #permits: () => number;
  #roundTripMs = 1;
  /** Whether somebody follows the results, as the server answered last. */
  live = false;

  /**
   * `usual`: of this request · `lately`: of all requests of this worker · `most`: longest delay of an outcome, in ms; 0:
   * each is settled at once · `permits`: how many it has now
   */
  constructor(usual: Usual, lately: Usual, most: number, permits: () => number) {
    this.#usual = usual;
    this.#lately = lately;
    this.#most = most;
    this.#permits = permits;
  }

  /** A call was answered after so many ms. */
  answered(ms: number): void {
    this.#roundTripMs += (ms - this.#roundTripMs) / AVERAGED;
  }

  /** For how long an outcome may wait for others, in ms; 0: not at all. */
  get delayMs(): number {
    const { averageMs } = this.#usual;
    if (averageMs === undefined) return 0;
    // cure: no outcome waits long while somebody follows the results
    const most = this.live ? Math.min(this.#most, LIVE_MS) : this.#most;
    const delayMs = Math.min(most, HANDLERS * averageMs, COMPANY / this.#perMs);
    return delayMs < 1 || delayMs * this.#perMs < LEAST_COMPANY ? 0 : delayMs;
  }

  /** How many sub-requests are to be started until the next reply beyond those that run. */
  get ahead(): number {
    const { averageMs } = this.#usual;
    if (averageMs === undefined) return 0;
    const { delayMs } = this;
    if (delayMs === 0 && this.#roundTripMs < GAP * averageMs) return 0;
    const needed = Math.ceil(RESERVE * this.#perMs * (delayMs + this.#roundTripMs)) + 1;
    return Math.min(needed, PER_PERMIT * this.#permits());
  }

  /** How many are started during one call. */
  get duringCall(): number {
    return this.#usual.averageMs === undefined ? 0 : this.#perMs * this.#roundTripMs;
  }

  /** How long a number of handlers takes, one after the other, in ms; undefined: not known. */
  handlersMs(count: number): number | undefined {
    const { averageMs } = this.#usual;
    return averageMs === undefined ? undefined : count * averageMs;
  }

  /** Whether handlers are short; undefined: not known. */
  get isShort(): boolean | undefined {
    const { averageMs } = this.#usual;
    return averageMs === undefined ? undefined : averageMs <= SHORT_MS;
  }

  /**
   * How many are read ahead for each permit with the first ones: as many as run within a time slice of `quantumMs`, as
   * far as handlers of this request, or the last ones of others, tell.
   */
  aheadFor(quantumMs: number): number {
    const averageMs = this.#usual.averageMs ?? this.#lately.averageMs;
    return averageMs === undefined ? 0 : aheadIn(averageMs, quantumMs);
  }

  /**
   * How many sub-requests one permit runs, one after the other, before another worker could have entered; 0: none, not
   * known, or a time slice of `quantumMs` is shorter.
   */
  quickFor(quantumMs: number): number {
    const averageMs = this.#usual.averageMs ?? this.#lately.averageMs;
    return averageMs === undefined ? 0 : quickIn(averageMs, quantumMs);
  }

  /** The time from one start to the next while all permits are in use, in ms; 0: not known. */
  get intervalMs(): number {
    return this.#usual.averageMs === undefined ? 0 : 1 / this.#perMs;
  }

  /** How many handlers end in a ms while all permits are in use. */
  get #perMs(): number {
    return Math.max(1, this.#permits()) / Math.max(0.001, this.#usual.averageMs ?? 1);
  }
}
