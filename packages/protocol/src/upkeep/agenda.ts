import type { Claim, QueueCommands, Tick } from '../calls/queue/queue-commands.js';
import { finishOnQueue, reopenIfClosed, withdrawGeneration } from '../calls/queue-sync.js';
import { type Crashed, TendCommands, type Tended } from '../calls/request/tend-commands.js';
import { pause } from '../common/waiting.js';
import { CLAIMS_PER_TICK, PARKED_PER_TICK, TIMES } from '../contract/defaults.js';
import { isRest } from '../contract/idle.js';
import { parseToken } from '../contract/keys.js';
import type { Connection } from '../redis/connection.js';
import { noteCrashes } from './crash-errors.js';
import { KnownTimes } from './known-times.js';

/**
 * Ticks from time to time: claims the requests that are due and tends them. Every worker, producer and notifier runs
 * an agenda while it has something open, so repairs happen as long as one of them is alive; there is no leader. A fleet
 * of W workers makes at most about 20 ticks a second together, as each waits at least W · 50 ms. Only a tick that
 * claimed as much as it can, or found as many parked requests, is followed by another at once. `start` and `close` may be called in any order and
 * repeatedly; `close` waits for a tick in progress, and `start` begins anew after it.
 *
 * A process that learns when something will be due keeps the time until it ticks then, because the reply of `tick` does
 * not show it while a claim moves the request 8 s ahead. If the process dies, others find the time within 5 s.
 *
 * A crash during a tick leaves a claim that becomes due again, or tokens that were counted and not pushed. The epochs
 * show that those are lost.
 */

const SHORTEST_MS = 1_000;
const LONGEST_MS = TIMES.tickMs;
/** Between two ticks of one process, for each worker of the fleet. */
const FLEET_TICK_MS = 50;
/** A reason of ours: without one, Node makes a DOMException each time. */
const STOPPED = 'stopped';

/** A tick under way. */
interface Round {
  readonly tick: Tick;
  /** How far the clock of this process is ahead of the server's, in ms. */
  readonly aheadMs: number;
  readonly expedited: Expedited[];
}

/** One that was tended, is due, and asked to go first. */
interface Expedited {
  readonly claim: Claim;
  readonly tended: Tended;
  readonly due: number;
}

export interface AgendaOptions {
  /** Boot id of the worker that ticks; '' for producers and notifiers. */
  readonly worker?: string;
  /** JSON about the worker, kept in the registry. */
  readonly info?: () => string;
  /** Tasks of the parked requests that it searches for, ' name name ' or '*'; '': none. @default none */
  readonly seeking?: () => string;
  /**
   * Longest time between two tends of a request that has permits or tokens. A worker passes its lease where that is
   * shorter: a tend does not know permits that are granted after it, and they would outlive their lease until the
   * next tend. @default TIMES.auditMs
   */
  readonly auditMs?: number;
  /**
   * Ticks when the next request is due, if that is sooner than its pace of a second, but not sooner than W · 50 ms. For
   * an agenda that has to be punctual. @default false
   */
  readonly prompt?: boolean;
  /**
   * How long it waits when nothing is due sooner, for a process with many agendas, or a frugal one. Less than
   * `TIMES.tickMs` counts as that. A process that has a lease rests no longer. @default TIMES.tickMs
   */
  readonly restMs?: () => number;
  /** Receives every tick, for example for the parked requests in it. */
  readonly onTick?: (tick: Tick) => void;
  /** Called when a tend took sub-requests back from workers that are gone. */
  readonly onReclaimed?: (requestId: string, count: number) => void;
  /** Called when a tend settled sub-requests as failed because their workers ended too often. */
  readonly onCrashed?: (requestId: string, crashed: Crashed) => void;
  /** Receives each error; the loop continues. */
  readonly onError?: (error: unknown) => void;
}

export class Agenda {
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #options: AgendaOptions;
  #stopping: AbortController | undefined;
  #wake = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  /** When the next tick is due by its pace, by the clock of this process; kept, as is what is known, by a close. */
  #dueMs = 0;
  readonly #known = new KnownTimes();
  /** When the pace of the fleet allows the next tick. */
  #earliestMs = 0;
  /** Whether its last tick said that it rests. */
  #rests = false;

  constructor(connection: Connection, queue: QueueCommands, options: AgendaOptions = {}) {
    this.#connection = connection;
    this.#queue = queue;
    this.#options = options;
  }

  start(): void {
    if (this.#stopping) return;
    this.#stopping = new AbortController();
    this.#loop = this.#run(this.#stopping.signal);
  }

  async close(): Promise<void> {
    this.#stopping?.abort(STOPPED);
    this.#stopping = undefined;
    await this.#loop;
  }

  /** Something is due in `ms`: ticks then, or as soon as the pace of the fleet allows. Earlier ticks change nothing. */
  wakeWithin(ms: number): void {
    const at = performance.now() + ms;
    // The reply of its next tick tells a prompt agenda what is due after it.
    if (this.#options.prompt && at >= this.#dueMs) return;
    const before = this.#nextMs;
    this.#known.add(at);
    if (this.#nextMs < before) this.#wake.abort(STOPPED);
  }

  /** The process has work: if its last tick said that it rests, it ticks now. */
  endRest(): void {
    if (this.#rests) this.wakeWithin(0);
  }

  /** The longest wait between two ticks. */
  get #restMs(): number {
    // cure: many agendas are ticked less often
    return Math.max(LONGEST_MS, this.#options.restMs?.() ?? 0);
  }

  /** When it ticks next. */
  get #nextMs(): number {
    return Math.min(this.#dueMs, Math.max(this.#known.first, this.#earliestMs));
  }

  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const waitMs = this.#nextMs - performance.now();
      // A timer cannot wait less than 1 ms. After a wake the remaining wait is computed anew: it may only be shorter.
      if (waitMs >= 1) {
        this.#wake = new AbortController();
        await pause(waitMs, stopping, this.#wake.signal);
        continue;
      }
      const now = performance.now();
      this.#dueMs = now + this.#restMs;
      // cure: a tick forgets only the times before it
      const wasKnown = this.#known.remove(now);
      try {
        const ms = await this.tick();
        this.#dueMs = performance.now() + ms;
      } catch (error) {
        // cure: a tick that failed is soon made again for what is due
        this.#dueMs = performance.now() + (wasKnown ? SHORTEST_MS : LONGEST_MS);
        // The close that ended it may have cut its connection as well.
        if (!stopping.aborted) this.#options.onError?.(error);
      }
    }
  }

  /** One tick: tends all that is due. Answers how long to wait until the next one, in ms. */
  async tick(): Promise<number> {
    const { worker = '', info, seeking } = this.#options;
    this.#rests = isRest(this.#restMs);
    const tick = await this.#queue.tick(worker, info?.() ?? '', seeking?.(), this.#rests);
    const aheadMs = performance.now() - tick.now;
    this.#options.onTick?.(tick);
    const round: Round = { tick, aheadMs, expedited: [] };
    const tended = await Promise.allSettled([
      ...tick.claims.map((claim) => this.#tend(claim, round)),
      ...tick.spent.map((spent) => this.#unlink(spent)),
    ]);
    for (const one of tended) {
      // The claim becomes due again by itself. A request that cannot be tended does not delay the others.
      if (one.status === 'rejected') this.#options.onError?.(one.reason);
    }
    await this.#writeBackInOrder(round);
    const { prompt } = this.#options;
    const jitter = 0.75 + Math.random() / 2;
    const ended = performance.now();
    const soonest = Math.max(1, tick.fleet) * FLEET_TICK_MS * jitter;
    this.#earliestMs = ended + soonest;
    // cure: a full page of parked requests is followed by the next one
    if (tick.parked.length >= PARKED_PER_TICK) return 0;
    if (tick.claims.length >= CLAIMS_PER_TICK) return 0;
    const restMs = this.#restMs;
    const untilNext = tick.next < 0 ? restMs : Math.min(tick.next - tick.now, restMs);
    if (prompt) return Math.max(soonest, untilNext - (ended - aheadMs - tick.now));
    return Math.max(SHORTEST_MS * jitter, soonest, untilNext);
  }

  /** Pushes in due order what is due together: a waiting worker takes what is pushed first. */
  async #writeBackInOrder({ expedited, aheadMs }: Round): Promise<void> {
    // cure: requests that are due together are written back in due order
    expedited.sort((a, b) => a.due - b.due || a.claim.generation - b.claim.generation);
    for (const { claim, tended } of expedited) {
      try {
        await this.#writeBack(claim, tended, aheadMs);
      } catch (error) {
        this.#options.onError?.(error);
      }
    }
  }

  async #tend(claim: Claim, { tick, aheadMs, expedited }: Round): Promise<void> {
    const { epoch } = this.#queue;
    const tended = await this.#request(claim).tend(
      claim.generation,
      claim.passed,
      tick.resumedAt,
      this.#options.auditMs,
      tick.now,
      tick,
    );
    // cure: workers log sub-requests that failed by crashes
    if (tended.verdict !== 'gone' && tended.crashed) await this.#crashed(claim, tended.crashed);
    if (tended.verdict === 'ok') {
      if (tended.reclaimed) this.#options.onReclaimed?.(claim.id, tended.reclaimed);
      if (tended.due && tended.mint > 0) expedited.push({ claim, tended, due: tended.due });
      else await this.#writeBack(claim, tended, aheadMs);
    } else if (tended.verdict === 'complete') {
      const ended = { ...tended, generation: claim.generation };
      await finishOnQueue(epoch, this.#queue, this.#request(claim), ended);
    } else {
      await withdrawGeneration(this.#queue, this.#request(claim), claim.generation);
    }
  }

  /**
   * Notes crashes among the last errors of the queue. If that fails, the tend continues: the list is only a summary.
   */
  async #crashed({ id }: Claim, crashed: Crashed): Promise<void> {
    const { onCrashed, onError } = this.#options;
    onCrashed?.(id, crashed);
    const { queue } = this.#queue.keys;
    await noteCrashes(this.#connection, queue, id, crashed.indexes).catch(onError);
  }

  #request({ id }: Claim): TendCommands {
    return new TendCommands(this.#connection, id);
  }

  /** Only this process knows when a request that it writes back is due, unless others tick before then. */
  async #writeBack(claim: Claim, tended: Tended, aheadMs: number): Promise<void> {
    const writeBack = () => this.#queue.writeBack(claim, tended);
    const next = await reopenIfClosed(
      this.#queue,
      this.#request(claim),
      claim.generation,
      writeBack,
    );
    if (typeof next !== 'number' || next === 0) return;
    const inMs = next + aheadMs - performance.now();
    // cure: a process keeps the next time of what it wrote back
    if (inMs < LONGEST_MS) this.wakeWithin(inMs);
  }

  /** Unlinks a large ended request when its retention is over. Its expiry would block the server for a while. */
  async #unlink(spent: string): Promise<void> {
    const { id, generation } = parseToken(spent);
    const isDone = await new TendCommands(this.#connection, id).unlinkSpent(generation);
    if (isDone) await this.#queue.forgetSpent(spent);
  }
}
