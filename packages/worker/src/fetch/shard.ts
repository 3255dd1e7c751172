import {
  Agenda,
  pausedForMs,
  QueueCommands,
  QueueControlCommands,
  QueueErrors,
  TIMES,
  type Tick,
} from '@piecework/protocol';
import { ErrorLog } from '../report/error-log.js';
import { Figures } from '../report/figures.js';
import { Pulse } from '../report/pulse.js';
import type { Slots } from '../shared/slots.js';
import type { WorkerContext } from '../shared/worker-context.js';
import { PauseWatch } from './queue-pause.js';
import { type OnTokens, TokenFetcher } from './token-fetcher.js';

/**
 * After how many ms a worker with named handlers searches for parked requests again: sooner when it left a request, later
 * when it rests.
 */
const SEARCH_MS = 1_000;
const SEARCH_AGAIN_MS = 250;

export interface ShardHooks {
  /** JSON about the worker, for the registry of this shard. */
  readonly info: (shard: Shard) => string;
  readonly onTokens: (shard: Shard, ...popped: Parameters<OnTokens>) => void;
  /** Requests to be entered without a token. */
  readonly onParked: (
    shard: Shard,
    requests: readonly { id: string; generation: number }[],
  ) => void;
  /** How many requests the worker works on. */
  readonly sessions: () => number;
  /** It was paused or resumed. */
  readonly onPaused: (shard: Shard) => void;
}

/**
 * A queue that a worker takes work from: its only one, or a shard of it. Has what the worker needs for each: a token
 * fetcher, an agenda, the pause. Sessions, slots and leases are common to all shards.
 *
 * new → started → draining → closed
 */
export class Shard {
  readonly queue: QueueCommands;
  readonly control: QueueControlCommands;
  readonly slots: Slots;
  readonly intake: TokenFetcher;
  readonly errors: ErrorLog;
  /** What this worker did for it. */
  readonly figures = new Figures();
  readonly #context: WorkerContext;
  readonly #hooks: ShardHooks;
  readonly pulse: Pulse;
  readonly #agenda: Agenda;
  readonly #pause = new PauseWatch((paused) => this.#setPaused(paused));
  #paused = false;
  #fleet = 1;
  /** Whether the last tick failed. */
  #tickFailed = false;
  #tickedAt = performance.now();
  /** When work came last. */
  #workedAt = Number.NEGATIVE_INFINITY;
  /** When a tick searches for parked requests, as far as one was asked for. */
  #searchAt = 0;
  #draining = false;

  /** `prompt`: the agenda ticks when something is due, instead of at its own pace. */
  constructor(
    context: WorkerContext,
    name: string,
    slots: Slots,
    prompt: boolean,
    hooks: ShardHooks,
  ) {
    const { connection, logger, events, id, leaseMs } = context;
    this.#context = context;
    this.#hooks = hooks;
    this.slots = slots;
    this.queue = new QueueCommands(connection, name);
    this.control = new QueueControlCommands(connection, name);
    this.errors = new ErrorLog(new QueueErrors(connection, name), id, logger);
    const { unblocking } = context;
    this.pulse = new Pulse(
      () => this.queue.learnLanes(),
      () => (connection.isOneServer ? context.answeredAt : 0),
      () => this.#slower,
    );
    this.intake = new TokenFetcher(
      connection,
      this.queue,
      slots,
      logger,
      (...popped) => {
        hooks.onTokens(this, ...popped);
        this.#begin();
      },
      events,
      unblocking,
      context.idleFactor,
    );
    this.#agenda = new Agenda(connection, this.queue, {
      worker: id,
      info: () => this.info(),
      seeking: () =>
        // cure: a paused worker searches for no parked requests
        this.takesWork ? context.handlers.served : '',
      auditMs: Math.min(TIMES.auditMs, leaseMs),
      prompt,
      restMs: () => this.restMs,
      onTick: (tick) => {
        this.#tickedAt = performance.now();
        this.#tickFailed = false;
        this.pulse.answered();
        this.figures.answered();
        events.measuring.learn(tick.now);
        this.pulse.fleet = tick.fleet;
        this.learn(pausedForMs({ until: tick.pausedUntil, at: tick.now }));
        this.#enterParked(tick);
      },
      onReclaimed: (requestId, count) => {
        const what = 'took over what ended workers had';
        context.flood.say('warn', what, { queue: this.name }, () => ({ requestId, count }));
        events.emit('reclaimed', { requestId, count });
      },
      onCrashed: (requestId, { count, indexes }) => {
        const what = 'sub-requests failed, as their workers ended too often';
        const fields = () => ({ requestId, count, indexes: indexes.slice(0, 3) });
        this.figures.note('failed', count);
        context.flood.say('warn', what, { queue: this.name }, fields);
      },
      onError: (error) => {
        // The first of a row; `calls stall` and `health` say that it lasts.
        logger[this.#tickFailed ? 'debug' : 'warn']({ err: error }, 'tick failed');
        this.#tickFailed = true;
        events.emitError(error);
      },
    });
  }

  get name(): string {
    return this.queue.keys.queue;
  }

  /** JSON about the worker, for the registry. */
  info(): string {
    return this.#hooks.info(this);
  }

  /** Whether it is paused: as when closing, until it is resumed. */
  get paused(): boolean {
    return this.#paused;
  }

  /** Whether tokens that come are turned into permits. */
  get takesWork(): boolean {
    return this.#context.takesWork && !this.#paused;
  }

  /** Time since the last tick that Redis answered, and after which time the next one is late, in ms. */
  get tick(): { readonly sinceMs: number; readonly lateMs: number } {
    // A big fleet ticks seldom; three ticks in a row may fail by chance.
    const lateMs = 3 * Math.max(TIMES.tickMs * this.#context.idleFactor, this.#fleet * 62.5);
    return { sinceMs: performance.now() - this.#tickedAt, lateMs };
  }

  /** The longest time until its next tick, in ms. */
  get restMs(): number {
    return TIMES.tickMs * this.#slower;
  }

  /** By how much its waits are longer now: a frugal worker rests when it had no work for as long as between two ticks. */
  get #slower(): number {
    const isIdle =
      this.#hooks.sessions() === 0 && performance.now() - this.#workedAt >= TIMES.tickMs;
    return isIdle ? this.#context.idleFactor : 1;
  }

  /** Registers the worker here, and reads what it has to know before it takes anything. */
  async register(): Promise<void> {
    await this.#agenda.tick();
  }

  start(): void {
    if (this.#draining) return;
    this.#agenda.start();
    this.intake.start();
    // cure: a pulse is sent while nothing else is
    this.pulse.start();
  }

  /** The worker takes nothing more, and a pause changes nothing any more. */
  drain(): void {
    this.#draining = true;
    this.#pause.close();
    this.pulse.close();
  }

  /** Ends the token fetcher, then the agenda; waits for a pop and a tick under way. */
  async close(): Promise<void> {
    this.drain();
    await this.intake.close();
    await this.#agenda.close();
  }

  /** Renews the entry of the worker in the registry at once. */
  refreshRegistry(): void {
    this.#agenda.wakeWithin(0);
  }

  /** Work has come. */
  #begin(): void {
    this.#workedAt = performance.now();
    // cure: a worker that rests ticks when work comes
    this.#agenda.endRest();
  }

  learn(pausedMs: number): void {
    this.#pause.learn(pausedMs);
  }

  /** It was paused or resumed: reads which. Without an answer, the next tick does. */
  readPause(): void {
    this.control.pausedForMs().then(
      (pausedMs) => this.learn(pausedMs),
      () => {},
    );
  }

  /** Something is due in `ms`: the agenda ticks then. */
  tickWithin(ms: number): void {
    this.#agenda.wakeWithin(ms);
  }

  /**
   * A worker that does not serve its task may have popped and parked a request that is new, or that this worker
   * left: a tick finds it.
   */
  tickForParked(ms = SEARCH_AGAIN_MS): void {
    if (this.#context.handlers.tasks === '*' || this.#context.closing || this.#draining) return;
    const now = performance.now();
    // cure: one tick that searches is asked for at a time
    if (now < this.#searchAt && this.#searchAt <= now + ms) return;
    this.#searchAt = now + ms;
    this.#agenda.wakeWithin(ms);
  }

  /**
   * Has parked requests of the worker's tasks entered, without a token. Without a free slot they go to the waiting
   * room, and their tokens back to the list.
   */
  #enterParked(tick: Tick): void {
    if (this.#context.closing || this.#paused) return;
    this.#fleet = tick.fleet;
    this.tickForParked(SEARCH_MS * this.#slower);
    if (tick.parked.length === 0) return;
    this.#hooks.onParked(this, tick.parked);
    this.#begin();
  }

  /**
   * While the queue is paused, all slots are withheld, so that no token is popped, and sessions leave as their
   * handlers end. An `enter` puts back a token that a pop under way still brings.
   */
  #setPaused(paused: boolean): void {
    this.#paused = paused;
    this.slots.withhold(paused ? this.slots.capacity : -this.slots.capacity);
    this.#hooks.onPaused(this);
    // It removes the key of a pause that is over.
    if (!paused) this.tickWithin(0);
    const about = { queue: this.name };
    this.#context.logger.info(about, paused ? 'queue paused' : 'queue resumed');
  }
}
