import type { Claim, QueueCommands, Seeking, Tick } from '../calls/queue-commands.js';
import { type Crashed, RequestCommands, type Tended } from '../calls/request-commands.js';
import { giveUp, tellOpen, tellOver } from '../calls/tell-open.js';
import { pause } from '../common/waiting.js';
import { CLAIMS_PER_TICK } from '../contract/defaults.js';
import { parseToken } from '../contract/keys.js';
import type { Connection } from '../redis/connection.js';
import { noteCrashes } from './crash-errors.js';

/**
 * Looks at the agenda from time to time and tends what is due. Every worker, producer and notifier
 * runs one while it has something open, so that the repairs happen with any of them alive; there is
 * no leader. A fleet of W workers ticks about 20 times a second together at most, as each waits at
 * least W · 50 ms; only one that claimed as much as it can ticks again at once, as there is work for
 * more. Start and stop may be called in any order and twice; stop waits for a tick under way.
 *
 * A crash inside leaves a claim that fires again, or tokens that were counted and not pushed, which
 * the epochs find lost.
 */

const SHORTEST_MS = 1_000;
const LONGEST_MS = 5_000;
/** Between two ticks of one process, for each worker of the fleet. */
const FLEET_TICK_MS = 50;
/** A reason of ours: without one, Node makes a DOMException each time. */
const STOPPED = 'stopped';

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
  /** Which parked requests it looks for. @default none */
  readonly seeking?: () => Seeking;
  /**
   * Longest time between two looks at a request that workers hold or are about to. A worker names its
   * lease where that is shorter: permits that are granted after a look are not known to it, and would
   * otherwise outlive their lease until the next. @default TIMES.auditMs
   */
  readonly auditMs?: number;
  /**
   * Ticks when the next request is due where that is sooner than its pace of a second, but no sooner
   * than W · 50 ms: for who promises to be in time. @default false
   */
  readonly prompt?: boolean;
  /**
   * How long it may rest where nothing is due before, for who keeps many agendas: it looks when something is.
   * Less than 5 s is 5 s. @default 5 s
   */
  readonly restMs?: () => number;
  /** Told of every tick, as for the requests that are parked. */
  readonly onTick?: (tick: Tick) => void;
  /** Told when a look took sub-requests back from workers that are gone. */
  readonly onReclaimed?: (requestId: string, count: number) => void;
  /** Told when a look settled sub-requests as failed, as their workers ended too often. */
  readonly onCrashed?: (requestId: string, crashed: Crashed) => void;
  /** Told of what went wrong; the loop goes on. */
  readonly onError?: (error: unknown) => void;
}

export class Agenda {
  readonly #connection: Connection;
  readonly #queue: QueueCommands;
  readonly #options: AgendaOptions;
  #stopping: AbortController | undefined;
  #wake = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  /** When the next tick is due, by the clock of this process: also for a loop that is started anew. */
  #dueMs = 0;
  /** When a tick was asked for since the last one began, and how soon one may be at the earliest. */
  #askedMs = Number.POSITIVE_INFINITY;
  #earliestMs = 0;

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

  async stop(): Promise<void> {
    this.#stopping?.abort(STOPPED);
    this.#stopping = undefined;
    await this.#loop;
  }

  /** Ticks now instead of at the next time, as when something is known to be due. */
  wake(): void {
    this.#dueMs = 0;
    this.#wake.abort(STOPPED);
  }

  /** Ticks in `ms` at the latest, as when something will be due then; but not sooner than its pace allows. */
  wakeWithin(ms: number): void {
    const at = Math.max(performance.now() + ms, this.#earliestMs);
    this.#askedMs = Math.min(this.#askedMs, at);
    if (at >= this.#dueMs) return;
    this.#dueMs = at;
    this.#wake.abort(STOPPED);
  }

  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const waitMs = this.#dueMs - performance.now();
      // Less than a timer can tell is no wait; whoever is woken may have been woken only to wait less.
      if (waitMs >= 1) {
        this.#wake = new AbortController();
        await pause(waitMs, stopping, this.#wake.signal);
        continue;
      }
      this.#askedMs = Number.POSITIVE_INFINITY;
      this.#dueMs = performance.now() + LONGEST_MS;
      try {
        const ms = await this.tick();
        this.#dueMs = Math.min(performance.now() + ms, Math.max(this.#askedMs, this.#earliestMs));
      } catch (error) {
        this.#options.onError?.(error);
      }
    }
  }

  /** One look: tends all that is due. Answers how long to wait until the next, in ms. */
  async tick(): Promise<number> {
    const { worker = '', info, seeking } = this.#options;
    const tick = await this.#queue.tick(worker, info?.() ?? '', seeking?.());
    const at = performance.now();
    this.#options.onTick?.(tick);
    const expedited: Expedited[] = [];
    const tended = await Promise.allSettled([
      ...tick.claims.map((claim) => this.#tend(claim, tick, expedited)),
      ...tick.spent.map((life) => this.#unlink(life)),
    ]);
    for (const one of tended) {
      // The claim fires again by itself; one request that cannot be tended holds up no other.
      if (one.status === 'rejected') this.#options.onError?.(one.reason);
    }
    await this.#writeBackInOrder(expedited);
    const { prompt } = this.#options;
    const jitter = 0.75 + Math.random() / 2;
    const ended = performance.now();
    const soonest = Math.max(1, tick.fleet) * FLEET_TICK_MS * jitter;
    this.#earliestMs = ended + soonest;
    if (tick.claims.length >= CLAIMS_PER_TICK) return 0;
    const restMs = Math.max(LONGEST_MS, this.#options.restMs?.() ?? 0);
    const untilNext = tick.next < 0 ? restMs : Math.min(tick.next - tick.now, restMs);
    if (prompt) return Math.max(soonest, untilNext - (ended - at));
    return Math.max(SHORTEST_MS * jitter, soonest, untilNext);
  }

  /** A worker that waits takes what is pushed first: what is due together is pushed in due order. */
  async #writeBackInOrder(expedited: Expedited[]): Promise<void> {
    expedited.sort((a, b) => a.due - b.due || a.claim.generation - b.claim.generation);
    for (const { claim, tended } of expedited) {
      try {
        await this.#writeBack(claim, tended);
      } catch (error) {
        this.#options.onError?.(error);
      }
    }
  }

  async #tend(claim: Claim, tick: Tick, expedited: Expedited[]): Promise<void> {
    const { epoch } = this.#queue;
    const tended = await this.#request(claim).tend(
      claim.generation,
      claim.passed,
      tick.resumedAt,
      this.#options.auditMs,
      tick.now,
      tick,
    );
    if (tended.verdict !== 'gone' && tended.crashed) await this.#crashed(claim, tended.crashed);
    if (tended.verdict === 'ok') {
      if (tended.reclaimed) this.#options.onReclaimed?.(claim.id, tended.reclaimed);
      if (tended.due && tended.mint > 0) expedited.push({ claim, tended, due: tended.due });
      else await this.#writeBack(claim, tended);
    } else if (tended.verdict === 'complete') {
      const over = { ...tended, generation: claim.generation };
      await tellOver(epoch, this.#queue, this.#request(claim), over);
    } else {
      await giveUp(this.#queue, this.#request(claim), claim.generation);
    }
  }

  /** The errors of the queue are a glance: what cannot be noted there holds nothing up. */
  async #crashed({ id }: Claim, crashed: Crashed): Promise<void> {
    const { onCrashed, onError } = this.#options;
    onCrashed?.(id, crashed);
    const { queue } = this.#queue.keys;
    await noteCrashes(this.#connection, queue, id, crashed.indexes).catch(onError);
  }

  #request({ id }: Claim): RequestCommands {
    return new RequestCommands(this.#connection, id);
  }

  async #writeBack(claim: Claim, tended: Tended): Promise<void> {
    const tell = () => this.#queue.writeBack(claim, tended);
    await tellOpen(this.#queue, this.#request(claim), claim.generation, tell);
  }

  /** What keeps much is not left to expire, which the server would do in the midst of its work. */
  async #unlink(life: string): Promise<void> {
    const { id, generation } = parseToken(life);
    const over = await new RequestCommands(this.#connection, id).unlinkSpent(generation);
    if (over) await this.#queue.forgetSpent(life);
  }
}
