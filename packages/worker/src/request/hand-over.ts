import type { Shard } from '../fetch/shard.js';
import type { Waiting } from '../shared/waiting-room.js';
import type { Pace } from './pace.js';
import type { Reading } from './reading.js';
import type { SessionMode } from './session-mode.js';
import type { SlotAccount } from './slot-account.js';
import type { TimeSlice } from './time-slice.js';
import type { TokenReturn } from './token-return.js';

/** The requests that are to have the slots of a session. */
export interface Successors {
  readonly tokens: readonly string[];
  readonly waiting: Waiting | undefined;
}

/** Whether the slots of a session may be passed on before they are free. */
export function mayPassOn({ takesWork, slots }: Shard, pace: Pace): boolean {
  return takesWork && !slots.shared && pace.isShort === true;
}

interface Hooks {
  /** Enters them with its slots, which become free one by one. Returns whether there are any. */
  readonly onSuccessors: (successors: Successors) => boolean;
  readonly onHandOver: () => void;
}

/**
 * The end of a turn. Requests that wait are entered while the last handlers of this session run, and read their first
 * sub-requests. Each slot passes to them when a handler ends, so that no slot is empty between two requests, and the
 * last outcomes can be settled together.
 *
 * It is not done where handlers are long, as others would wait for what was read here; nor where several queues share
 * the slots, as the token fetchers know whose turn it is; nor at the end of an expedited request: if one of its last
 * handlers fails and is to be tried again, those that were due later would have begun before it.
 */
export class HandOver {
  readonly #shard: Shard;
  readonly #mode: SessionMode;
  readonly #pace: Pace;
  readonly #reading: Reading;
  readonly #tokens: TokenReturn;
  readonly #slice: TimeSlice;
  readonly #account: SlotAccount;
  readonly #hooks: Hooks;
  /** When the turn began in which it was done last. */
  #doneIn: number | undefined;

  constructor(
    shard: Shard,
    parts: {
      readonly mode: SessionMode;
      readonly pace: Pace;
      readonly reading: Reading;
      readonly tokens: TokenReturn;
      readonly slice: TimeSlice;
      readonly account: SlotAccount;
    },
    hooks: Hooks,
  ) {
    this.#shard = shard;
    this.#mode = parts.mode;
    this.#pace = parts.pace;
    this.#reading = parts.reading;
    this.#tokens = parts.tokens;
    this.#slice = parts.slice;
    this.#account = parts.account;
    this.#hooks = hooks;
  }

  /** Whether the session has left, and its handlers end soon. */
  get isDue(): boolean {
    const { yielding, isDry, leaving } = this.#mode;
    if (!leaving || !(yielding || isDry) || this.#doneIn === this.#slice.startedAt) return false;
    // cure: what an expedited request tries again goes before those that were due later
    if (isDry && this.#tokens.place.due) return false;
    const { busy, aheadSize } = this.#reading;
    const endSoon = 2 * aheadSize <= busy && mayPassOn(this.#shard, this.#pace);
    return endSoon && busy > 0 && this.#account.promisable > 0;
  }

  /** Enters those that wait. If a session yields, and nobody waits any more, its next turn begins. */
  async begin(): Promise<void> {
    this.#doneIn = this.#slice.startedAt;
    const waiting = this.#tokens.nextWaiting();
    const tokens = waiting ? [] : await this.#tokens.takeNext(this.#account.promisable);
    const hasOthers = this.#hooks.onSuccessors({ tokens, waiting });
    if (hasOthers || this.#mode.isDry) {
      this.#mode.handOver();
      this.#hooks.onHandOver();
    } else if (this.#mode.resume()) this.#slice.begin();
  }
}
