import { type Complete, decodePolicy, TIMES } from '@piecework/protocol';
import type { Shard } from '../fetch/shard.js';
import type { RunLog } from '../report/run-log.js';
import type { Attempts } from './attempts.js';
import type { MemoryRoom } from './memory-room.js';
import type { Reading } from './reading.js';
import type { Entered, SessionCalls } from './session-calls.js';
import type { SessionLease } from './session-lease.js';
import type { SessionMode } from './session-mode.js';
import type { SlotAccount } from './slot-account.js';
import type { TimeSlice } from './time-slice.js';
import type { TokenReturn } from './token-return.js';

type Granted = Extract<Entered, { readonly verdict: 'ok' }>;
type Refused = Exclude<Entered, { readonly verdict: 'ok' }>;

interface Parts {
  readonly log: RunLog;
  readonly calls: SessionCalls;
  readonly room: MemoryRoom;
  readonly attempts: Attempts;
  readonly lease: SessionLease;
  readonly reading: Reading;
  readonly slice: TimeSlice;
  readonly tokens: TokenReturn;
  readonly account: SlotAccount;
}

interface Hooks {
  /** Nothing of the request is left to do. */
  readonly onEnded: (complete: Complete | undefined) => void;
  readonly occupySlots: () => void;
  /** It has its permits: works on, in the same turn. Handlers that await nothing end in the next one, all together. */
  readonly work: () => Promise<void>;
}

/** How a session gets its permits, and what it does with the first sub-requests. */
export class Entering {
  readonly #session: { readonly shard: Shard; readonly generation: number };
  readonly #mode: SessionMode;
  readonly #parts: Parts;
  readonly #hooks: Hooks;

  constructor(
    session: { readonly shard: Shard; readonly generation: number },
    mode: SessionMode,
    parts: Parts,
    hooks: Hooks,
  ) {
    this.#session = session;
    this.#mode = mode;
    this.#parts = parts;
    this.#hooks = hooks;
  }

  /** With tokens (their epochs), for up to `want` slots. `awaits`: they are still in use. */
  async withTokens(epochs: readonly string[], want: number, awaits: boolean): Promise<void> {
    const { account, calls, lease, reading, room } = this.#parts;
    let [wanted, sentAt, granted] = [0, 0, 0];
    let entered: Entered;
    try {
      wanted = await room.permitsFor(this.#session.shard.takesWork ? want : 0);
      sentAt = performance.now();
      entered = await calls.enter(epochs, wanted, account, reading.entering(wanted === want));
      if (entered.verdict === 'ok') granted = entered.permits - lease.permits;
    } finally {
      account.answered(want, awaits ? Math.max(0, want - granted) : 0);
    }
    if (entered.verdict !== 'ok') return this.#refused(entered);
    return this.#begin(entered, epochs.length, wanted, sentAt);
  }

  async #refused(entered: Refused): Promise<void> {
    if (entered.verdict === 'unserved') return this.#parts.calls.park(entered.task);
    this.#hooks.onEnded(entered.verdict === 'complete' ? entered : undefined);
  }

  async #begin(entered: Granted, tokens: number, wanted: number, sentAt: number): Promise<void> {
    const { attempts, lease, log, reading, slice } = this.#parts;
    const { shard, generation } = this.#session;
    const granted = entered.permits - lease.permits;
    // After a freeze the old permits may be gone, and these may be of a new grant, which does not cover what runs.
    lease.fence();
    lease.checkGrant(entered.grantNo);
    lease.extend(sentAt);
    this.#parts.tokens.entered(entered, tokens, wanted, granted);
    const willing = wanted > 0 && shard.takesWork;
    if (willing) reading.returnSurplus();
    lease.granted(entered.permits);
    // Before their slots are counted: one that hands over counts only what runs.
    const begins = lease.permits > 0 && this.#mode.enter(willing);
    attempts.setTerms(entered.task, entered.attempts, decodePolicy(entered.policy));
    reading.answered(entered);
    this.#hooks.occupySlots();
    lease.scheduleFirstTend(entered.ends, generation + TIMES.intentGraceMs);
    if (lease.permits === 0) return this.#hooks.work();
    log.begun(lease.permits);
    if (begins) lease.compareFrom(slice.begin());
    reading.startEntered(entered.entries);
    this.#hooks.occupySlots();
    if (entered.entries.length > 0 && entered.ready === 0) this.#mode.runDry();
    // It may own entries that it never saw.
    if (entered.ready < 0) await reading.giveBackUnknown();
    return this.#hooks.work();
  }
}
