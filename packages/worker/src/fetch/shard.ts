import {
  Agenda,
  LongTimer,
  pausedForMs,
  QueueCommands,
  QueueControlCommands,
  QueueErrors,
  TIMES,
  type Tick,
} from '@piecework/protocol';
import { ErrorLog } from '../report/error-log.js';
import { Pulse } from '../report/pulse.js';
import type { Slots } from '../shared/slots.js';
import type { WorkerContext } from '../shared/worker-context.js';
import { ParkedSearch } from './parked-search.js';
import { PauseWatch } from './queue-pause.js';
import { TokenFetcher } from './token-fetcher.js';

/** How soon, in ms, a worker with named handlers looks for what was parked; sooner when there was. */
const LOOK_MS = 1_000;
const LOOK_AGAIN_MS = 250;

export interface ShardHooks {
  /** JSON about the worker, for the registry. */
  readonly info: () => string;
  readonly onTokens: (shard: Shard, tokens: readonly string[]) => void;
  /** Requests to be entered without a token. */
  readonly onParked: (
    shard: Shard,
    requests: readonly { id: string; generation: number }[],
  ) => void;
  /** It is paused, or goes on. */
  readonly onPaused: (shard: Shard) => void;
}

/**
 * A queue that a worker takes work from: the only one that it has, or a shard of it. Here it waits for
 * tokens, looks at the agenda, and learns of pauses. What it holds and runs, and under which lease, is
 * one for all shards.
 */
export class Shard {
  readonly queue: QueueCommands;
  readonly control: QueueControlCommands;
  readonly slots: Slots;
  readonly intake: TokenFetcher;
  readonly errors: ErrorLog;
  readonly #core: WorkerContext;
  readonly #hooks: ShardHooks;
  readonly pulse: Pulse;
  readonly #agenda: Agenda;
  readonly #parked: ParkedSearch;
  readonly #pause = new PauseWatch((paused) => this.#setPaused(paused));
  #paused = false;
  #fleet = 1;
  #tickedAt = performance.now();
  #look: LongTimer | undefined;
  #lookAt = 0;

  /** `prompt`: what is due is moved at its time. */
  constructor(core: WorkerContext, name: string, slots: Slots, prompt: boolean, hooks: ShardHooks) {
    const { connection, logger, events, id, leaseMs } = core;
    this.#core = core;
    this.#hooks = hooks;
    this.slots = slots;
    this.#parked = new ParkedSearch(core.handlers.tasks);
    this.queue = new QueueCommands(connection, name);
    this.control = new QueueControlCommands(connection, name);
    this.errors = new ErrorLog(new QueueErrors(connection, name), id, logger);
    const onTokens = (tokens: readonly string[]) => hooks.onTokens(this, tokens);
    const { unblocking } = core;
    this.pulse = new Pulse(
      () => this.queue.learnLanes(),
      () => (connection.isOneServer ? core.answeredAt : 0),
    );
    this.intake = new TokenFetcher(
      connection,
      this.queue,
      slots,
      logger,
      onTokens,
      events,
      unblocking,
    );
    this.#agenda = new Agenda(connection, this.queue, {
      worker: id,
      info: hooks.info,
      seeking: () => this.#parked.next(),
      auditMs: Math.min(TIMES.auditMs, leaseMs),
      prompt,
      onTick: (tick) => {
        this.#tickedAt = performance.now();
        this.pulse.answered();
        this.pulse.fleet = tick.fleet;
        this.learn(pausedForMs({ until: tick.pausedUntil, at: tick.now }));
        this.#enterParked(tick);
      },
      onReclaimed: (requestId, count) => {
        const what = 'took over what ended workers had';
        core.flood.say('warn', what, { queue: this.name }, () => ({ requestId, count }));
        events.tell('reclaimed', { requestId, count });
      },
      onCrashed: (requestId, { count, indexes }) => {
        const what = 'sub-requests failed, as their workers ended too often';
        const fields = () => ({ requestId, count, indexes: indexes.slice(0, 3) });
        core.flood.say('warn', what, { queue: this.name }, fields);
      },
      onError: (error) => {
        logger.warn({ err: error }, 'tick failed');
        events.tellError(error);
      },
    });
  }

  get name(): string {
    return this.queue.keys.queue;
  }

  /** As when closing, until it goes on. */
  get paused(): boolean {
    return this.#paused;
  }

  /** Whether tokens that come are turned into permits. */
  get takesWork(): boolean {
    return this.#core.takesWork && !this.#paused;
  }

  /** Since the last look at the agenda that Redis answered, and after how long it is late, in ms. */
  get tick(): { readonly sinceMs: number; readonly lateMs: number } {
    // A big fleet looks seldom; three looks in a row may fail by chance.
    const lateMs = 3 * Math.max(5_000, this.#fleet * 62.5);
    return { sinceMs: performance.now() - this.#tickedAt, lateMs };
  }

  /** Registers the worker here, and learns what it has to know before it takes anything. */
  async register(): Promise<void> {
    await this.#agenda.tick();
  }

  start(): void {
    this.#agenda.start();
    this.intake.start();
    this.pulse.start();
  }

  /** The agenda is not to be looked at more often than it is, and no pause matters any more. */
  rest(): void {
    this.#look?.clear();
    this.#pause.stop();
    this.pulse.stop();
  }

  /** Tells the registry at once how the worker is. */
  tellRegistry(): void {
    this.#agenda.wake();
  }

  stopAgenda(): Promise<void> {
    return this.#agenda.stop();
  }

  learn(pausedMs: number): void {
    this.#pause.learn(pausedMs);
  }

  /** Somebody paused or resumed it. Without an answer the next tick says so. */
  askPause(): void {
    this.control.pausedForMs().then(
      (pausedMs) => this.learn(pausedMs),
      () => {},
    );
  }

  /** Looks at the agenda sooner than it would, at the pace of the whole fleet. */
  lookWithin(ms: number): void {
    if (this.#core.closing) return;
    const waitMs = Math.max(ms, this.#fleet * 50);
    const at = performance.now() + waitMs;
    if (this.#look && this.#lookAt <= at) return;
    this.#look?.clear();
    this.#lookAt = at;
    this.#look = new LongTimer(waitMs, () => {
      this.#look = undefined;
      this.#agenda.wake();
    });
  }

  /**
   * A request that is new, or that this worker left, may have been met, and parked, by one that does
   * not serve its task.
   */
  lookForParked(ms = LOOK_AGAIN_MS): void {
    if (this.#core.handlers.tasks !== '*') this.lookWithin(ms);
  }

  /**
   * Has parked requests entered, without a token, whose task this worker serves. Without a free slot they
   * come into the waiting room, and their tokens back into the list.
   */
  #enterParked(tick: Tick): void {
    this.#parked.goOn(tick.parkedAfter);
    if (this.#core.closing || this.#paused) return;
    this.#fleet = tick.fleet;
    const { parked } = tick;
    this.lookForParked(parked.length > 0 ? LOOK_AGAIN_MS : LOOK_MS);
    this.#hooks.onParked(this, parked);
  }

  /**
   * While the queue is paused all slots are taken, so that no token is popped, and what is held is
   * left as its handlers end. A token that a pop under way still brings is put back by `enter`.
   */
  #setPaused(paused: boolean): void {
    this.#paused = paused;
    this.slots.withhold(paused ? this.slots.capacity : -this.slots.capacity);
    this.#hooks.onPaused(this);
    const about = { queue: this.name };
    this.#core.logger.info(about, paused ? 'queue paused' : 'queue goes on');
  }
}
