import type { Complete, Outcome, Place } from '@piecework/protocol';
import type { Shard } from '../fetch/shard.js';
import type { Attempt } from '../handler/attempt.js';
import type { RunLog } from '../report/run-log.js';
import { Mailbox } from '../shared/mailbox.js';
import type { WorkerContext } from '../shared/worker-context.js';
import type { Attempts } from './attempts.js';
import { Entering } from './entering.js';
import type { HandOver } from './hand-over.js';
import type { MemoryRoom } from './memory-room.js';
import type { Outcomes } from './outcomes.js';
import type { Pace } from './pace.js';
import type { Reading } from './reading.js';
import type { SessionCalls } from './session-calls.js';
import type { SessionLease } from './session-lease.js';
import { SessionMode } from './session-mode.js';
import { partsOf, type SessionHooks } from './session-parts.js';
import type { Settling } from './settling.js';
import type { SlotAccount } from './slot-account.js';
import type { Suspects } from './suspects.js';
import type { TimeSlice } from './time-slice.js';
import type { TokenReturn } from './token-return.js';

/**
 * What a worker process does with one request: it enters with tokens, gets permits, runs handlers under them,
 * settles their outcomes, and continues, yields or leaves. `#work` is that loop, SessionMode has its states.
 *
 * One thing at a time: the mailbox runs all that awaits a call, since replies contain absolute numbers of permits.
 * A crash leaves permits, which expire with the lease, and entries, which a tend reclaims.
 */
export class RequestSession {
  readonly id: string;
  readonly generation: number;
  /** The queue, or the shard, that its tokens are in. */
  readonly shard: Shard;
  readonly attempts: Attempts;
  readonly lease: SessionLease;
  readonly #context: WorkerContext;
  readonly #onEnded: (session: RequestSession) => void;
  readonly #log: RunLog;
  readonly #calls: SessionCalls;
  readonly #mode = new SessionMode();
  readonly #settling: Settling;
  readonly #outcomes: Outcomes;
  readonly #reading: Reading;
  readonly #pace: Pace;
  readonly #slice: TimeSlice;
  readonly #suspects: Suspects;
  readonly #room: MemoryRoom;
  readonly #tokens: TokenReturn;
  readonly #mailbox: Mailbox;
  readonly #account: SlotAccount;
  readonly #handOver: HandOver;
  readonly #entering: Entering;

  constructor(
    context: WorkerContext,
    shard: Shard,
    id: string,
    generation: number,
    hooks: SessionHooks & { readonly onEnded: (session: RequestSession) => void },
  ) {
    this.#context = context;
    this.shard = shard;
    this.id = id;
    this.generation = generation;
    this.#onEnded = hooks.onEnded;
    const parts = partsOf(context, this, hooks, this.#mode, {
      onAttemptEnd: this.#onAttemptEnd,
      onLost: (why) => this.#lose(why),
      onCancelling: () => this.#cancel(),
      onReturned: () => this.#kick(),
      runSuspects: (company) => this.#runSuspects(company),
      onSlot: () => setImmediate(() => this.#startNext()),
      onHandOver: () => this.#occupySlots(),
    });
    this.#log = parts.log;
    this.#calls = parts.calls;
    this.#room = parts.room;
    this.attempts = parts.attempts;
    this.lease = parts.lease;
    this.#settling = parts.settling;
    this.#outcomes = parts.settling.outcomes;
    this.#suspects = parts.suspects;
    this.#pace = parts.pace;
    this.#reading = parts.reading;
    this.#slice = parts.slice;
    this.#tokens = parts.tokens;
    this.#account = parts.account;
    this.#handOver = parts.handOver;
    this.#entering = new Entering(this, this.#mode, parts, {
      onEnded: (complete) => this.#end(complete),
      occupySlots: () => this.#occupySlots(),
      work: () => this.#work(),
    });
    this.#mailbox = new Mailbox({ onError: this.#onError, onDone: this.#onDone });
  }

  /** Whether it left so that somebody else gets a turn. */
  get yielding(): boolean {
    return this.#mode.yielding;
  }

  /** Whether nothing runs, waits to be settled, or is under way; suspects may wait. */
  get quiet(): boolean {
    const { aheadSize } = this.#reading;
    return this.attempts.size + this.#outcomes.size + aheadSize === 0 && this.#mailbox.isQuiet;
  }

  /** How many slots of its share it lacks, if it is in its turn, is of this place, and can use more. */
  lacks(place: Place): number {
    return this.#mailbox.isBusy ? 0 : this.#tokens.lacks(place, this.lease.permits);
  }

  /**
   * Turns tokens (their epochs) into permits for up to `want` slots, and begins to work. `from`: the session that gives
   * these slots up as its handlers end; otherwise they are free.
   */
  enter(epochs: readonly string[], want: number, from?: SlotAccount): void {
    this.#account.reserve(want, from);
    this.#occupySlots();
    this.#mailbox.run(() => this.#entering.withTokens(epochs, want, from !== undefined));
  }

  /** Reads and starts nothing more; gives permits back as handlers end. */
  leave(): void {
    if (this.#mode.ended) return;
    if (this.#context.closing || this.shard.paused) this.#suspects.return();
    // cure: who leaves starts nothing of what was read ahead
    this.#reading.returnAhead();
    this.#mode.leave();
    this.#kick();
  }

  /** Aborts what still runs and gives it back unfinished. */
  abandon(): void {
    this.#settling.giveBackRunning();
    this.#letGo('the worker closes');
    this.leave();
  }

  /**
   * Reads the state of the request at once, as a notice says that it was cancelled, dropped, paused or changed; again
   * behind a call that is under way, as that may have brought more. Without an answer, the next renewal reads it.
   */
  refresh(): void {
    const now = () => {
      this.#reading.returnAhead();
      return this.lease.renew(0).catch(() => {});
    };
    void now();
    if (this.#mailbox.isBusy) this.#mailbox.run(now);
  }

  /**
   * Gives back what the server believes this worker owns although it does not, every `everyMs` at most: a read
   * brought it whose reply got lost, as when the connection broke and the client library sent the read again.
   * Nothing else reclaims it as long as the worker has permits.
   */
  compare(everyMs: number): void {
    if (!this.lease.isComparisonDue(everyMs)) return;
    this.#mailbox.run(async () => {
      await this.#reading.giveBackUnknown();
      await this.#work();
    });
  }

  /**
   * The loop of a worker on one request: settle what has ended, read and start as much as the permits allow, and
   * at the end of a time slice continue, yield or leave; until there is nothing to do but wait for handlers, or for
   * outcomes that are to be settled together. Each handler that ends starts the next sub-request that is here, and
   * the loop again.
   */
  async #work(): Promise<void> {
    while (!this.#mode.ended) {
      this.lease.fence();
      if (this.#reading.hasWork && this.#slice.mayEnd)
        this.#reading.yieldTo(await this.#slice.whoIsNext());
      if (this.#handOver.isDue) await this.#handOver.begin();
      if (this.#settling.owesCheckpoints) await this.#settling.sendCheckpoints();
      else if (this.#mode.working && this.#room.mayLack) await this.#leaveIfFull();
      else if (this.#reading.hasToSettle) await this.#settleAndAsk();
      else if (this.#reading.hasToTake) await this.#take(this.#reading.free);
      else return this.#workLater();
    }
  }

  /** Works again when there may be something to settle or to read, also if no handler ends until then. */
  #workLater(): void {
    const { dueInMs } = this.#reading;
    if (dueInMs !== undefined) this.#mailbox.runLater(Math.max(1, dueInMs), () => this.#work());
  }

  async #settle(): Promise<void> {
    const { busy: running, keep, size: read, ahead } = this.#reading;
    const grantNo = this.#outcomes.doubtful ? '' : this.lease.grantNo;
    const sentAt = performance.now();
    this.#mailbox.cancelLater();
    this.lease.returned();
    const outcomes = this.#outcomes.next();
    // cure: leave before push
    const counts = { keep: Math.max(keep, running), running, read, ahead: Math.min(read, ahead) };
    this.#reading.settling(running);
    const { settled, entries, unsure } = await this.#calls.settle(outcomes, grantNo, counts);
    this.#pace.answered(performance.now() - sentAt);
    this.#settling.answered(outcomes, settled, sentAt);
    if (settled.verdict === 'complete') return this.#end(settled);
    if (settled.verdict !== 'ok') return this.#end(undefined);
    this.lease.extend(sentAt);
    const freed = this.lease.permits - settled.permits;
    this.#account.returned(freed);
    this.lease.granted(settled.permits);
    if (settled.permits === 0) this.#outcomes.doubt();
    this.#tokens.place = { priority: settled.priority, due: settled.due };
    this.#reading.answered(settled);
    this.#settling.scheduleRetries(settled.nextDue);
    if (settled.permits < running) this.#lose('the lease was withdrawn');
    this.#reading.settled(settled, read > 0);
    this.#reading.startSettled(entries, settled.permits - running);
    if (settled.cancelling) this.#cancel();
    const room = Math.min(read, settled.permits - running + (settled.share < 0 ? 0 : counts.ahead));
    // cure: a read that large payloads cut short is not dry
    const isWhole = !settled.cut;
    if (entries.length < room && settled.dueNow === 0 && !unsure && isWhole) this.#mode.runDry();
    this.#occupySlots();
    this.#endIsolationIfDone();
    // cure: leave before push, 2
    this.#tokens.settled(settled.mint, settled.epoch, freed);
    // A repeat: the worker may own entries it never saw.
    if (unsure) await this.#reading.giveBackUnknown();
  }

  async #take(max: number): Promise<void> {
    const taken = await this.#calls.take(max);
    if (taken === 'gone' || taken === 'lost') return this.#stop(taken);
    // A repeat: the worker may own entries it never saw.
    // cure: what a repeated take brought is compared
    if (taken.left < 0) return this.#reading.giveBackUnknown();
    // With none left, the next round reads new ones.
    this.#reading.dueNow = taken.left;
    this.#reading.start(taken.entries);
    this.#occupySlots();
  }

  /** A question shares the write of a settle. What that brought comes before the answer. */
  async #settleAndAsk(): Promise<void> {
    if (!this.#reading.hasWork || !this.#slice.hasToAsk) return this.#settle();
    const [who] = await Promise.all([this.#slice.whoIsNext(), this.#settle()]);
    this.#reading.yieldTo(who);
  }

  async #leaveIfFull(): Promise<void> {
    if (!(await this.#room.holdIfFull())) return;
    this.#reading.returnAhead();
    this.#mode.leaveWork();
  }

  #runSuspects(company: number): void {
    this.#mailbox.run(async () => {
      const verdict = await this.#suspects.startAll(company);
      if (verdict !== 'ok') this.#stop(verdict);
    });
  }

  /** When its suspects are settled, the process takes work again. */
  #endIsolationIfDone(): void {
    const left = this.#reading.busy + this.attempts.zombieCount + this.#outcomes.size;
    if (left === 0) this.#context.isolation.end(this);
  }

  readonly #onAttemptEnd = (
    attempt: Attempt,
    outcome: Outcome | undefined,
    underLease: boolean,
  ): void => {
    if (outcome) this.#settling.report(attempt, outcome);
    if (!underLease) this.#outcomes.doubt();
    this.#startNext();
    if (this.#mode.handsOver) this.#occupySlots();
  };

  /** A slot is free. */
  #startNext(): void {
    this.#reading.startAhead();
    this.#kick();
  }

  /** The server answered that there is nothing to do under these permits. */
  #stop(verdict: 'gone' | 'lost'): void {
    if (verdict === 'gone') this.#end(undefined);
    else this.#lose('the lease was withdrawn');
  }

  #cancel(): void {
    this.#suspects.return();
    this.attempts.cancel();
    this.leave();
  }

  /** Others may have what runs here: the handlers are asked to stop, and only a success of theirs counts. */
  #lose(why: string): void {
    this.#context.logger.warn({ requestId: this.id, why }, 'lease lost');
    const indexes = Array.from(this.attempts.running(), ({ index }) => index);
    this.#context.events.emit('leaseLost', { requestId: this.id, why, indexes });
    this.lease.lose();
    this.#outcomes.doubt();
    this.#suspects.return();
    this.attempts.lose(why);
    this.#occupySlots();
    this.leave();
  }

  #end(complete: Complete | undefined): void {
    this.#mode.end();
    this.lease.end();
    this.#mailbox.cancelLater();
    this.#settling.clear();
    this.#suspects.clear();
    this.#reading.clear();
    this.#letGo('the request ended');
    this.#context.waitingRoom.delete(this.id);
    this.#context.known.forget(this.id, this.generation);
    if (complete) this.#calls.complete(complete);
  }

  /** Aborts all handlers and forgets them; each keeps its slot until it has ended. */
  #letGo(why: string): void {
    if (this.attempts.size === 0) this.#context.isolation.end(this);
    else void this.attempts.abandon(why).then(() => this.#context.isolation.end(this));
    this.#occupySlots();
  }

  /** Occupies as many slots as it needs, for zombies and enters under way, too. */
  #occupySlots(): void {
    const { zombieCount } = this.attempts;
    const { slots, busy } = this.#reading;
    this.#account.occupy(slots + zombieCount, busy + zombieCount);
    this.lease.account();
  }

  /** Works once everything that ends in this turn of the event loop has ended, if there is anything to do yet. */
  #kick(): void {
    const isDue = this.#reading.hasToSettle || this.#handOver.isDue;
    const waits = this.#mailbox.isDelayed && !isDue;
    if (!this.#mode.ended && !waits) this.#mailbox.runAfterTurn(() => this.#work());
  }

  readonly #onError = (error: unknown): void => {
    this.#context.failed(this.id, error, 'session failed');
    this.#end(undefined);
  };

  /** A piece of work has ended; with nothing left to do, so has the session. */
  readonly #onDone = (isEmpty: boolean): void => {
    this.#occupySlots();
    if (!isEmpty) return;
    const read = this.#reading.busy + this.#reading.aheadSize;
    const left = this.lease.permits + read + this.attempts.zombieCount;
    if (left + this.#outcomes.size === 0) this.#mode.end();
    if (this.#mode.ended) {
      this.#log.ended();
      this.#onEnded(this);
    }
    this.#context.isolation.check();
  };
}
