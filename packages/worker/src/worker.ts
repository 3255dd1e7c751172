import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import {
  Agenda,
  ClosedError,
  Connection,
  checkOptions,
  option,
  parseToken,
  pause,
  QueueCommands,
  QueueControlCommands,
  QueueErrors,
  type QueuePause,
  TIMES,
  type Tick,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import { pino } from 'pino';
import { Alone } from './alone.js';
import { Control } from './control.js';
import { Engagement } from './engagement.js';
import { ErrorLog } from './error-log.js';
import { Events, type WorkerEvents } from './events.js';
import { Handlers } from './handler.js';
import { judge, type WorkerHealth, type WorkerState } from './health.js';
import { Intake } from './intake.js';
import { Leases } from './leases.js';
import { type WorkerOptions, workerOptions } from './options.js';
import { PauseWatch } from './queue-pause.js';
import { Renewal } from './renewal.js';
import { Slots } from './slots.js';
import { WorkerCore } from './worker-core.js';

/** How long a close may take beyond its timeout to give back what was not finished. */
const GIVE_BACK_MS = 5_000;
/** The same, when the connection is down. */
const UNREACHABLE_MS = 500;
/** How soon, in ms, a worker with named handlers looks for what was parked; sooner when there was. */
const LOOK_MS = 1_000;
const LOOK_AGAIN_MS = 250;
/** How many parked requests one look at the agenda enters. */
const PARKED_PER_TICK = 100;

/**
 * Runs the sub-requests of a queue.
 *
 * ```ts
 * const worker = new Worker({ redis, concurrency: 50, handler: async (payload) => work(payload) });
 * await worker.start();
 * await worker.close({ timeoutMs: 10_000 });
 * ```
 *
 * `start` resolves when the worker is registered and waits for work. `close` may be called at any
 * time and more than once. What happens meanwhile it tells to listeners (WorkerEvents); none is needed.
 */
export class Worker extends EventEmitter<WorkerEvents> implements AsyncDisposable {
  readonly #core: WorkerCore;
  readonly #intake: Intake;
  readonly #leases: Leases;
  readonly #agenda: Agenda;
  readonly #control: Control;
  readonly #pause = new PauseWatch((paused) => this.#setPaused(paused));
  readonly #engagements = new Map<string, Engagement>();
  #fleet = 1;
  #look: NodeJS.Timeout | undefined;
  #lookAt = 0;
  #starting: Promise<void> | undefined;
  #state: WorkerState = 'new';
  #tickedAt = performance.now();
  #registered = false;
  #closing: Promise<void> | undefined;

  /** @throws InvalidOptionError */
  constructor(options: WorkerOptions) {
    super();
    const checked = checkOptions<
      Required<Omit<WorkerOptions, 'handler' | 'handlers' | 'backoff' | 'logger'>> & WorkerOptions
    >(workerOptions, options);
    const handlers = new Handlers(checked.handler, checked.handlers);
    const connection = Connection.open(checked.redis);
    const id = `${hostname().replace(/[^A-Za-z0-9.-]/g, '')}-${process.pid}-${nanoid(8)}`;
    const logger =
      checked.logger ?? pino({ name: 'piecework', level: 'warn' }, pino.destination(2));
    const slots = new Slots(checked.concurrency);
    const ownLogger = logger.child({ worker: id });
    const { leaseMs, maxBlockMs } = checked;
    const events = new Events(this, ownLogger);
    const queueControl = new QueueControlCommands(connection, checked.queue);
    const core = new WorkerCore({
      id,
      connection,
      queue: new QueueCommands(connection, checked.queue),
      handlers,
      slots,
      alone: new Alone(
        slots,
        () => this.#engagements.values(),
        () => core.running,
      ),
      leaseMs,
      renewal: new Renewal({
        client: connection.client,
        ...{ worker: id, leaseMs, maxBlockMs, logger: ownLogger },
        // Each request that is held has a permit, and slots bound the permits.
        rows: checked.concurrency,
      }),
      quantumMs: checked.quantumMs,
      maxResultBytes: checked.maxResultBytes,
      backoff: checked.backoff,
      lookWithin: (ms) => this.#lookWithin(ms),
      logger: ownLogger,
      events,
      errors: new ErrorLog(new QueueErrors(connection, checked.queue), id, ownLogger),
      holdQueue: async (ms) => {
        const pause = await core.insist(checked.queue, () => queueControl.pause(ms));
        this.#pause.learn(pause);
      },
    });
    this.#core = core;
    const hooks = {
      onRequest: ({ id, generation }: { id: string; generation: number }) =>
        this.#engagements.get(`${id}~${generation}`)?.ask(),
      onQueue: (pause: QueuePause) => this.#pause.learn(pause),
      onLane: (priority: number) => core.queue.lanes.learn(priority),
      // Not answered, the next tick tells it.
      onMaybeMissed: () => void core.queue.learnLanes().catch(() => {}),
    };
    this.#control = new Control(connection, core.queue.keys.control, hooks, ownLogger);
    const onTokens = (tokens: readonly string[]) => this.#dispatch(tokens);
    this.#intake = new Intake(connection, core.queue, core.slots, core.logger, onTokens, events);
    this.#leases = new Leases(core.leaseMs, () => this.#engagements.values(), core.logger, events);
    const about = {
      pid: process.pid,
      host: hostname(),
      concurrency: checked.concurrency,
      tasks: handlers.tasks,
      startedAt: Date.now(),
    };
    this.#agenda = new Agenda(connection, core.queue, {
      worker: core.id,
      info: () => JSON.stringify({ ...about, running: this.running }),
      auditMs: Math.min(TIMES.auditMs, leaseMs),
      onTick: (tick) => {
        this.#tickedAt = performance.now();
        this.#pause.learn({ until: tick.pausedUntil, at: tick.now });
        this.#enterParked(tick);
      },
      onReclaimed: (requestId, count) => events.tell('reclaimed', { requestId, count }),
      onError: (error) => {
        core.logger.warn({ err: error }, 'tick failed');
        events.tellError(error);
      },
    });
  }

  /** Boot id of this worker, as the registry and the logs show it. */
  get id(): string {
    return this.#core.id;
  }

  /** How many handlers run now. */
  get running(): number {
    return this.#core.running;
  }

  /** Whether this worker lives and takes work, and if not, why. Does no I/O. */
  health(): WorkerHealth {
    const { id, queue, slots } = this.#core;
    const verdict = judge({
      state: this.#state,
      intakeDown: this.#intake.down,
      intakeOver: this.#intake.over,
      renewalDown: this.#core.renewal.down,
      sinceTickMs: performance.now() - this.#tickedAt,
      // A big fleet looks seldom; three looks in a row may fail by chance.
      tickLateMs: 3 * Math.max(5_000, this.#fleet * 62.5),
    });
    const { running } = this;
    const { queue: name } = queue.keys;
    const concurrency = slots.capacity;
    return { worker: id, queue: name, state: this.#state, ...verdict, running, concurrency };
  }

  /**
   * Registers the worker and begins to take work.
   * @throws ServerError · ConnectionError · ClosedError when it was closed before or meanwhile
   */
  async start(): Promise<this> {
    if (this.#closing) throw new ClosedError('worker');
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined;
      if (this.#state === 'starting') this.#state = 'new';
      throw error;
    });
    await this.#starting;
    return this;
  }

  /** Its first connection is there before anybody listens to this. */
  readonly #onReady = () => this.#core.events.tell('reconnected', { connection: 'calls' });

  async #start(): Promise<void> {
    this.#state = 'starting';
    await this.#core.connection.check();
    if (this.#closing) throw new ClosedError('worker');
    this.#registered = true;
    const { client } = this.#core.connection;
    client.off('ready', this.#onReady);
    client.on('ready', this.#onReady);
    await this.#agenda.tick();
    if (this.#closing) throw new ClosedError('worker');
    this.#agenda.start();
    this.#leases.start();
    this.#control.start();
    this.#intake.start();
    this.#state = 'running';
    const { queue, slots, handlers, leaseMs, logger } = this.#core;
    const about = { queue: queue.keys.queue, concurrency: slots.capacity, tasks: handlers.tasks };
    logger.info({ ...about, leaseMs }, 'worker started');
  }

  /**
   * Takes no more work, waits up to `timeoutMs` for running handlers, aborts those that are left and
   * gives them back unfinished. @default timeoutMs 30000
   */
  close(options: { timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs } = checkOptions<{ timeoutMs: number }>(
      { timeoutMs: option.ms(0, 2_147_483_647, 30_000) },
      options,
    );
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(timeoutMs: number): Promise<void> {
    const started = this.#state === 'running';
    this.#state = 'closing';
    if (started) this.#core.logger.info({ running: this.running, timeoutMs }, 'worker closing');
    this.#core.closing = true;
    clearTimeout(this.#look);
    this.#pause.stop();
    if (this.#starting) await this.#within(this.#starting);
    for (const engagement of this.#engagements.values()) engagement.leave();
    await this.#intake.stop();
    await this.#drained(timeoutMs);
    for (const engagement of this.#engagements.values()) engagement.abandon();
    const reachable = this.#core.connection.client.status === 'ready';
    await this.#drained(reachable ? GIVE_BACK_MS : UNREACHABLE_MS);
    this.#leases.stop();
    await this.#within(this.#control.stop());
    await this.#core.renewal.stop();
    this.#core.ended = true;
    await this.#within(this.#agenda.stop());
    // Before it departs: the last one to leave clears them away.
    await this.#within(this.#core.errors.flush());
    if (this.#registered && !(await this.#within(this.#core.queue.depart(this.id))))
      this.#core.logger.warn('the registry forgets this worker by itself');
    // A connection that is not ours is closed at once, by doing nothing.
    const { connection } = this.#core;
    connection.client.off('ready', this.#onReady);
    if (!(await this.#within(connection.close()))) connection.cut();
    this.#state = 'closed';
    if (started) this.#core.logger.info('worker closed');
  }

  /** Whether `work` succeeded in time; there is little of it when the server cannot be reached. */
  async #within(work: Promise<void>): Promise<boolean> {
    const { status } = this.#core.connection.client;
    const timer = new AbortController();
    const done = work.then(
      () => true,
      () => false,
    );
    const late = pause(status === 'ready' ? GIVE_BACK_MS : UNREACHABLE_MS, timer.signal);
    const succeeded = await Promise.race([done, late.then(() => false)]);
    timer.abort();
    return succeeded;
  }

  /** Waits until nothing is held and no call is under way any more. */
  async #drained(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    const busy = () => this.#engagements.size > 0 || !this.#core.settled;
    while (busy() && performance.now() < end) await pause(5);
  }

  /**
   * While the queue is paused all slots are taken, so that no token is popped, and what is held is
   * left as its handlers end. A token that a pop under way still brings is put back by `enter`.
   */
  #setPaused(paused: boolean): void {
    const { slots, logger } = this.#core;
    this.#core.paused = paused;
    slots.take(paused ? slots.capacity : -slots.capacity);
    if (paused) for (const engagement of this.#engagements.values()) engagement.leave();
    logger.info(paused ? 'queue paused' : 'queue goes on');
  }

  /** Gathers the tokens of each request and enters it. `from`: who took them, perhaps over by now. */
  #dispatch(tokens: readonly string[], from?: Engagement): void {
    const arrived = new Map<string, Arrival>();
    for (const token of tokens) {
      const { id, generation, epoch } = parseToken(token);
      const key = `${id}~${generation}`;
      const known = arrived.get(key);
      if (known) known.epochs.push(epoch);
      else arrived.set(key, { id, generation, epochs: [epoch] });
    }
    this.#enterAll([...arrived.values()], from);
  }

  /**
   * Shares the free slots among requests and enters each. One that gets none is entered all the
   * same: its tokens are counted out and minted again, to wait at the end of their list. That is how
   * a request that yields its turn lets the others pass, and how a closing worker hands tokens on.
   */
  #enterAll(arrivals: readonly Arrival[], from?: Engagement): void {
    const entries = arrivals.map(({ id, generation, epochs }) => {
      const engagement = this.#engagementOf(id, generation);
      const yields = engagement.yielding || (from?.yielding && from.id === id);
      return { engagement, epochs, turn: !yields };
    });
    const nobodyElse = entries.every(({ turn }) => !turn);
    let free = this.#core.closing ? 0 : this.#core.slots.free;
    let left = entries.filter(({ turn }) => turn || nobodyElse).length;
    for (const { engagement, epochs, turn } of entries) {
      let want = 0;
      if (turn || nobodyElse) {
        want = Math.ceil(free / left);
        free -= want;
        left -= 1;
      }
      engagement.enter(epochs, want);
    }
  }

  #engagementOf(id: string, generation: number): Engagement {
    const key = `${id}~${generation}`;
    let engagement = this.#engagements.get(key);
    if (!engagement) {
      engagement = new Engagement(this.#core, id, generation, {
        onTokens: (tokens, from) => this.#dispatch(tokens, from),
        onTurn: (waiting) => this.#enterAll([{ ...waiting, epochs: [] }]),
        onOver: (over) => {
          if (this.#engagements.get(key) === over) {
            this.#engagements.delete(key);
            if (this.#engagements.size === 0) this.#core.events.tell('drained');
          }
          this.#lookForParked(LOOK_AGAIN_MS);
        },
      });
      this.#engagements.set(key, engagement);
    }
    return engagement;
  }

  /**
   * A request that is new, or that this worker left, may have been met, and parked, by one that does
   * not serve its task.
   */
  #lookForParked(ms: number): void {
    if (this.#core.handlers.tasks !== '*') this.#lookWithin(ms);
  }

  /** Looks at the agenda sooner than it would, at the pace of the whole fleet. */
  #lookWithin(ms: number): void {
    if (this.#core.closing) return;
    const waitMs = Math.max(ms, this.#fleet * 50);
    const at = performance.now() + waitMs;
    if (this.#look && this.#lookAt <= at) return;
    clearTimeout(this.#look);
    this.#lookAt = at;
    this.#look = setTimeout(() => {
      this.#look = undefined;
      this.#agenda.wake();
    }, waitMs);
  }

  /**
   * Enters, without a token, parked requests whose task this worker serves. Without a free slot they
   * come into the waiting room, and their tokens back into the list.
   */
  #enterParked(tick: Tick): void {
    if (this.#core.closing || this.#core.paused) return;
    this.#fleet = tick.fleet;
    const served = tick.parked.filter(({ task }) => this.#core.handlers.for(task));
    this.#lookForParked(served.length > 0 ? LOOK_AGAIN_MS : LOOK_MS);
    this.#enterAll(
      served
        .slice(0, PARKED_PER_TICK)
        .map(({ id, generation }) => ({ id, generation, epochs: [] })),
    );
  }
}

/** A request to enter, with the epochs of the tokens that came for it. */
interface Arrival {
  readonly id: string;
  readonly generation: number;
  readonly epochs: string[];
}
