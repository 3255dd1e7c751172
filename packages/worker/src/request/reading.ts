import type { Contention, Entry } from '@piecework/protocol';
import type { Slots } from '../shared/slots.js';
import type { Attempts } from './attempts.js';
import type { Pace } from './pace.js';
import { ReadAhead } from './read-ahead.js';
import type { Remainder } from './remainder.js';
import type { SessionCalls } from './session-calls.js';
import type { SessionLease } from './session-lease.js';
import type { SessionMode } from './session-mode.js';
import type { Settling } from './settling.js';
import type { SlotAccount } from './slot-account.js';
import type { Suspects } from './suspects.js';

/** Most that one settle is to bring, in characters of payloads: Redis keeps it several times meanwhile. */
const MOST = 1_048_576;
/** How many are read as long as nothing is known of their payloads. */
const FIRST = 16;

/** How many sub-requests to read at once, by permits, slots and size; and what becomes of each that was read. */
export class Reading {
  readonly #mode: SessionMode;
  readonly #lease: SessionLease;
  readonly #attempts: Attempts;
  readonly #suspects: Suspects;
  readonly #settling: Settling;
  readonly #slots: Slots;
  readonly #account: SlotAccount;
  readonly #calls: SessionCalls;
  readonly #pace: Pace;
  readonly #remainder: Remainder;
  readonly #mayReadAhead: boolean;
  readonly #quantumMs: number;
  readonly #onReturned: () => void;
  readonly #ahead: ReadAhead;
  /** Its share of what nobody has read, as the server answered last. */
  #share = 0;
  /** While a settle is under way: as many may run as it says; the reply may leave permits for no more. */
  #ceiling = Number.POSITIVE_INFINITY;
  /** How many the last enter could read ahead for each permit, to be run at once. */
  #quick = 0;
  /** How many sub-requests wait for their next attempt and are due, as the server answered last. */
  dueNow = 0;
  #averageSize: number | undefined;

  constructor(parts: {
    readonly mode: SessionMode;
    readonly lease: SessionLease;
    readonly attempts: Attempts;
    readonly suspects: Suspects;
    readonly settling: Settling;
    readonly slots: Slots;
    readonly account: SlotAccount;
    readonly calls: SessionCalls;
    readonly pace: Pace;
    readonly remainder: Remainder;
    /** Whether sub-requests may be read before a handler can start them. */
    readonly mayReadAhead: boolean;
    /** Time slice of a request, in ms. */
    readonly quantumMs: number;
    /** What was read ahead was given back. */
    readonly onReturned: () => void;
  }) {
    this.#mode = parts.mode;
    this.#lease = parts.lease;
    this.#attempts = parts.attempts;
    this.#suspects = parts.suspects;
    this.#settling = parts.settling;
    this.#slots = parts.slots;
    this.#account = parts.account;
    this.#calls = parts.calls;
    this.#pace = parts.pace;
    this.#remainder = parts.remainder;
    this.#mayReadAhead = parts.mayReadAhead;
    this.#quantumMs = parts.quantumMs;
    this.#onReturned = parts.onReturned;
    this.#ahead = new ReadAhead(() => this.#giveUpAhead());
  }

  /** How many sub-requests need a permit. */
  get busy(): number {
    return this.#attempts.runningCount + this.#suspects.size;
  }

  /** For how many more sub-requests there are permits and slots. */
  get free(): number {
    return this.#mode.working ? this.#usable - this.busy : 0;
  }

  /** How many permits are still needed. */
  get keep(): number {
    const { permits } = this.#lease;
    const excess = this.#slots.over + this.#account.surplus;
    // Permits whose slot another session still uses are kept.
    const most = Math.min(permits, Math.max(this.busy, permits - excess));
    if (this.#mode.working) return most;
    // cure: a session that leaves keeps permits for what it has read, until their slots are free
    return Math.min(most, this.busy + this.#ahead.size);
  }

  /** How many slots are occupied for its permits and for what runs. */
  get slots(): number {
    const permits = this.#lease.permits - this.#account.surplus;
    // Who hands over gives a slot up when its handler has ended.
    const needed = this.#mode.handsOver ? Math.min(permits, this.busy + this.#ahead.size) : permits;
    return Math.max(needed, this.busy);
  }

  /** It works again: others have the slots of the permits that are not in use, so these are given back. */
  returnSurplus(): void {
    if (this.#mode.handsOver) this.#account.addSurplus(this.#lease.permits - this.slots);
  }

  /** How many sub-requests were read, and are not started. */
  get aheadSize(): number {
    return this.#ahead.size;
  }

  /** How many more are to be read than there are permits for. */
  get ahead(): number {
    if (!this.#mode.working || !this.#mayReadAhead) return 0;
    const most = Math.min(
      this.#pace.ahead,
      this.#share,
      // cure: a slow worker reads nothing ahead that others would end sooner
      this.#remainder.ahead,
    );
    return Math.max(0, most - this.#ahead.size);
  }

  /**
   * An enter is sent: how many it may read for each permit beyond it. `ahead`: where no other worker could run them ·
   * `quick`: also where others could, as they run at once. `wantsAll`: false if a server that is nearly full gets no more
   * than one, to see how much that needs.
   */
  entering(wantsAll: boolean): { readonly ahead: number; readonly quick: number } {
    const may = this.#mayReadAhead && this.#share >= 0 && wantsAll;
    const ahead = may ? this.#pace.aheadFor(this.#quantumMs) : 0;
    const runsAtOnce = may && this.#account.withoutSlot === 0;
    this.#quick = runsAtOnce ? this.#pace.quickFor(this.#quantumMs) : 0;
    return { ahead, quick: this.#quick };
  }

  /** How many new sub-requests the next settle is to read. What large payloads leave free, the next round reads. */
  get size(): number {
    if (this.dueNow > 0) return 0;
    // cure: nothing is read while more waits than one settle takes
    if (this.#settling.outcomes.isMuch) return 0;
    // cure: a slow worker leaves the last sub-requests to others
    if (this.#standsBackMs > 0) return 0;
    const wanted = this.free + this.ahead;
    if (this.#averageSize === undefined) return Math.min(wanted, FIRST);
    return Math.min(wanted, Math.max(1, Math.floor(MOST / Math.max(1, this.#averageSize))));
  }

  /** Whether the session is in its turn, and has outcomes to settle. */
  get hasWork(): boolean {
    return this.#mode.working && this.#settling.outcomes.size > 0;
  }

  /** Whether there is anything to settle, to read or to give back now. */
  get hasToSettle(): boolean {
    const { permits, unused } = this.#lease;
    // They go back with the outcomes that wait.
    const isEarly = this.#mode.handsOver && this.keep > 0 && this.#settling.outcomes.size > 0;
    if (this.keep < permits && !isEarly) return true;
    if (unused || (this.free > 0 && this.size > 0)) return true;
    return this.#settling.outcomes.size > 0 && this.settleInMs <= 0;
  }

  /** Whether something waits for its next attempt and is due, and there are permits for it. */
  get hasToTake(): boolean {
    return this.dueNow > 0 && this.free > 0;
  }

  /**
   * For how long the outcomes that wait may still wait for others, in ms: as long as the next sub-requests are here,
   * so that no slot waits for this settle.
   */
  get settleInMs(): number {
    const { outcomes } = this.#settling;
    const left = this.#mode.working ? Math.floor(this.#pace.duringCall) : 0;
    // While it hands over, its slots do not wait for this settle either.
    const mayWait = this.#mode.handsOver ? this.keep > 0 : this.#ahead.size > left;
    // cure: what ended is settled as soon as nothing is left to start
    if (!mayWait || outcomes.isMuch) return 0;
    return this.#pace.delayMs - outcomes.waitedMs;
  }

  /**
   * After how long there may be something to settle or to read although no handler ends, in ms; undefined: there is
   * neither.
   */
  get dueInMs(): number | undefined {
    const settles = this.#settling.outcomes.size > 0 ? [this.settleInMs] : [];
    // cure: who stands back takes part again
    const reads = this.free > 0 ? [this.#standsBackMs] : [];
    const all = [...settles, ...reads];
    return all.length > 0 ? Math.min(...all) : undefined;
  }

  /** For how long it leaves what is left to others although it has free permits, in ms; 0: it does not. */
  get #standsBackMs(): number {
    const may = this.#mayReadAhead && this.dueNow === 0;
    return may ? this.#remainder.standsBackMs : 0;
  }

  /** How many may run here. Handlers whose time is up still have their slots, and so have those of other sessions. */
  get #usable(): number {
    return Math.max(this.busy, this.#withSlot - this.#slots.over);
  }

  /** How many permits have a slot. */
  get #withSlot(): number {
    // cure: handlers start only in slots that the session occupies
    const slots = this.#account.held - this.#attempts.zombieCount;
    return Math.min(this.#lease.permits, slots);
  }

  /** An enter or a settle was answered. `live`: somebody follows the results. */
  answered({ dueNow, live }: { readonly dueNow: number; readonly live: boolean }): void {
    this.dueNow = dueNow;
    this.#pace.live = live;
  }

  /** A settle is sent that says how many run. */
  settling(running: number): void {
    // cure: no more starts during a settle than it says
    this.#ceiling = running;
  }

  /**
   * A settle was answered. `share`: the worker's share of what nobody has read, if it asked for any; -1: nothing that
   * was read before is to be started.
   */
  settled(
    reply: { readonly share: number; readonly granted: number; readonly left: number },
    asked: boolean,
  ): void {
    this.#remainder.answered(reply);
    if (asked || reply.share < 0) this.#share = reply.share;
    this.#ceiling = Number.POSITIVE_INFINITY;
    // cure: what was read ahead is not started above a lowered limit or on a paused request
    if (this.#share < 0) this.returnAhead();
  }

  /**
   * Starts what was read ahead, then these, which a settle brought that left `spare` permits without a handler. Above a
   * lowered limit, or on a paused request, a handler that has ended since that call was sent makes no room: its permit
   * is not to be used again, as the next settle will answer.
   */
  startSettled(entries: readonly Entry[], spare: number): void {
    this.startAhead();
    this.start(entries, this.#share < 0 ? spare : this.#lease.permits - this.busy);
    this.#note(entries);
  }

  /** Starts what an enter brought. */
  startEntered(entries: readonly Entry[]): void {
    this.start(entries);
    this.#note(entries);
    // cure: what was taken for short and is not goes back
    if (this.#quick > 0) this.#ahead.expire(performance.now());
  }

  /** Starts up to `most` of these, as far as there are permits; gives the rest back unstarted. */
  start(entries: readonly Entry[], most = entries.length): void {
    const end = this.busy + most;
    // It may have begun to leave while the read was under way, or its process stood still.
    const mayStart = () => this.#mode.working && this.busy < Math.min(this.#usable, end);
    // cure: the lease is checked before suspects are claimed
    this.#lease.fence();
    // Suspects first: with their claim all sessions leave, this one too, and what was read with them goes back.
    const room = Math.min(this.#withSlot, end) - this.busy;
    const waiting = this.#suspects.claim(entries, room);
    for (const entry of entries) {
      if (waiting.has(entry)) continue;
      // A server that lost writes may bring what runs here already.
      // cure: what runs here is not started again
      if (this.#attempts.runs(entry.entry)) continue;
      // cure: what was read ahead is not started twice
      if (this.#ahead.has(entry.entry)) continue;
      // cure: the lease is checked before a handler starts
      const now = this.#lease.fence();
      if (!entry.suspect && mayStart()) {
        this.#attempts.start(entry, now);
        continue;
      }
      if (!entry.suspect && this.#mode.working && this.#mayReadAhead && this.#share >= 0) {
        this.#ahead.add(entry, now, this.#pace.delayMs);
        continue;
      }
      // cure: give-back of unstarted reads
      this.#settling.giveBack(entry.entry);
    }
  }

  /** Starts what was read ahead, as far as handlers have ended. */
  startAhead(): void {
    while (this.#ahead.size > 0 && this.busy < Math.min(this.#ceiling, this.#usable)) {
      // cure: nothing that was read ahead starts while more waits than one settle takes
      if (this.#settling.outcomes.isMuch) return;
      // cure: the lease is checked before what was read ahead starts
      const now = this.#lease.fence();
      // Handlers that do not await run one after the other here, and no timer meanwhile.
      // cure: handlers that block do not run on when they were taken for short
      if (this.#ahead.isExpired(now)) this.#giveUpAhead();
      // Without a lease nothing is left.
      const entry = this.#ahead.take(now);
      if (entry) this.#attempts.start(entry, now);
    }
  }

  /** Whoever goes before this request has the slots at once, an equal when what was read ahead is done. */
  yieldTo(who: Contention): void {
    if (who === 'keep' || !this.#mode.working) return;
    if (who === 'leave') this.returnAhead();
    this.#mode.yield();
  }

  /** Gives back what was read ahead. */
  returnAhead(): void {
    const entries = this.#ahead.takeAll();
    for (const entry of entries) this.#settling.giveBack(entry);
    if (entries.length > 0) this.#onReturned();
  }

  /** What was read ahead waits for too long: it goes back. */
  #giveUpAhead(): void {
    // It was taken for one that uses a slot or two: the next ones get more.
    if (this.#quick > 0) this.#slots.entered(0, true, this.#pace.isShort);
    // cure: others are not read for what goes back
    this.#share = 0;
    this.#account.renounce();
    this.returnAhead();
  }

  /** Forgets what was read ahead, as the request has ended. */
  clear(): void {
    this.#ahead.takeAll();
  }

  #note(entries: readonly Entry[]): void {
    if (entries.length === 0) return;
    let length = 0;
    for (const { payload } of entries) length += payload.length;
    const average = length / entries.length;
    // What came last counts as much as everything before: payloads that grow are noticed soon.
    this.#averageSize =
      this.#averageSize === undefined ? average : (this.#averageSize + average) / 2;
  }

  /** Gives back what the server believes this worker owns and it never saw, because a reply got lost. */
  async giveBackUnknown(): Promise<void> {
    const { outcomes } = this.#settling;
    const owned = this.#attempts.size + outcomes.size + this.#ahead.size;
    let count = owned + 100;
    let pending = await this.#calls.pending(count);
    while (pending.length === count) {
      count *= 4;
      pending = await this.#calls.pending(count);
    }
    // Read after the answer: what ended meanwhile is among the outcomes.
    const known = new Set([...outcomes.entries(), ...this.#attempts.entries()]);
    for (const { entry } of this.#suspects.waiting) known.add(entry);
    // cure: what was read ahead is known
    for (const entry of this.#ahead.entries()) known.add(entry);
    for (const entry of pending) if (!known.has(entry)) this.#settling.giveBack(entry);
  }
}
