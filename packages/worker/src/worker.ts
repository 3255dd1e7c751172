import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import {
  ClosedError,
  Connection,
  checkOptions,
  IndeterminateError,
  InvalidOptionError,
  LONGEST_RUNS,
  option,
  Patience,
  PieceworkError,
  pause,
  type RegisteredWorker,
  ServerError,
  shardNames,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import pTimeout from 'p-timeout';
import { pino } from 'pino';
import { Control } from './control-listener.js';
import { Dispatcher } from './dispatcher.js';
import { Shard } from './fetch/shard.js';
import { WorkerShards } from './fetch/worker-shards.js';
import { Handlers } from './handler/handler.js';
import { Heartbeat } from './lease/heartbeat.js';
import { Renewal } from './lease/renewal.js';
import { type StartOptions, startOptions, type WorkerOptions, workerOptions } from './options.js';
import { Pull } from './pull/pull.js';
import type { SubRequest } from './pull/sub-request.js';
import { SubRequests, type SubRequestsOptions, subRequestsOptions } from './pull/sub-requests.js';
import { Events, type WorkerEvents } from './report/events.js';
import { judge, type WorkerHealth, type WorkerState } from './report/health.js';
import { SlotPool } from './shared/slots.js';
import { WorkerContext } from './shared/worker-context.js';

/** How long a close may take beyond its timeout to give back what was not finished. */
const GIVE_BACK_MS = 5_000;
/** The same, when the connection is down. */
const UNREACHABLE_MS = 500;
/** Handlers may clear up after their abort in the last quarter of a close, and for no longer than this. */
const CLEAR_UP_MS = 1_000;

/**
 * Runs the sub-requests of a queue, of all its shards.
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
  readonly #core: WorkerContext;
  readonly #shards: readonly Shard[];
  readonly #queue: string;
  readonly #concurrency: number;
  readonly #heartbeat: Heartbeat;
  readonly #pull: Pull | undefined;
  readonly #control: Control;
  readonly #dispatcher: Dispatcher;
  #starting: Promise<void> | undefined;
  #state: WorkerState = 'new';
  /** With how many shards it is registered, or may be. */
  #registrations = 0;
  #closing: Promise<void> | undefined;
  /** Somebody who was to be told something in closing gave no answer. */
  #hangs = false;
  readonly #ending = new AbortController();

  /**
   * @param company given by whoever runs workers over several queues as one
   * @throws InvalidOptionError
   */
  constructor(options: WorkerOptions, company?: Company) {
    super();
    const checked = checkOptions<
      Required<Omit<WorkerOptions, 'handler' | 'handlers' | 'backoff' | 'slowMs' | 'logger'>> &
        WorkerOptions
    >(workerOptions, options);
    const pool = company?.slots ?? new SlotPool(checked.concurrency);
    this.#queue = checked.queue;
    this.#concurrency = pool.capacity;
    const names = shardNames(checked.queue, checked.shards);
    const held = { held: () => this.#dispatcher.sessions, running: () => this.running };
    const slots = pool.joinAll(held, names.length);
    const demand = {
      capacity: pool.capacity,
      withhold: (n: number) => {
        for (const one of slots) one.withhold(n);
      },
    };
    this.#pull = checked.handler || checked.handlers ? undefined : new Pull(demand);
    const handlers = new Handlers(checked.handler, checked.handlers, this.#pull);
    const connection = Connection.open(checked.redis);
    const id = `${hostname().replace(/[^A-Za-z0-9.-]/g, '')}-${process.pid}-${nanoid(8)}`;
    const logger =
      checked.logger ?? pino({ name: 'piecework', level: 'warn' }, pino.destination(2));
    const ownLogger = logger.child({ worker: id });
    const { leaseMs, maxBlockMs } = checked;
    const events = new Events(this, ownLogger);
    const queues = {
      shared: () => this.#shards.some((shard) => shard.slots.shared),
      fleet: () => Math.max(1, ...this.#shards.map(({ pulse }) => pulse.fleet)),
    };
    const parts = {
      id,
      connection,
      handlers,
      alone: pool.alone,
      leaseMs,
      renewal: new Renewal({
        client: connection.client,
        ...{ worker: id, leaseMs, maxBlockMs, logger: ownLogger },
        // Each request that is held has a permit, and slots bound the permits.
        rows: pool.capacity,
      }),
      quantumMs: checked.quantumMs,
      maxResultBytes: checked.maxResultBytes,
      backoff: checked.backoff,
      slowMs: checked.slowMs,
      logger: ownLogger,
      events,
    };
    const core = new WorkerContext(parts, queues);
    this.#core = core;
    const about = {
      pid: process.pid,
      host: hostname(),
      concurrency: checked.concurrency,
      tasks: handlers.tasks,
      startedAt: Date.now(),
    };
    const ofShard = {
      info: () => JSON.stringify({ ...about, ...this.#now }),
      onTokens: (shard: Shard, tokens: readonly string[]) =>
        this.#dispatcher.dispatch(shard, tokens),
      onParked: (shard: Shard, requests: readonly { id: string; generation: number }[]) =>
        this.#dispatcher.enterAll(
          shard,
          requests.map(({ id, generation }) => ({ id, generation, epochs: [] })),
        ),
      onPaused: (shard: Shard) => this.#dispatcher.leavePaused(shard),
    };
    const prompt = company !== undefined;
    this.#shards = names.map((name, i) => {
      const shard = new Shard(core, name, slots[i] as (typeof slots)[number], prompt, ofShard);
      if (company) shard.queue.lanes.learnAll();
      return shard;
    });
    const shards = new WorkerShards(this.#shards, (about, call) => core.insist(about, call));
    this.#dispatcher = new Dispatcher(core, shards);
    const hooks = {
      onRequest: ({ id, generation }: { id: string; generation: number }) =>
        this.#dispatcher.of(id, generation)?.ask(),
      onQueue: (shard: Shard) => shard.askPause(),
      onLane: ({ queue }: Shard, priority: number) => queue.lanes.learn(priority),
      // Not answered, the next tick tells it.
      onMaybeMissed: ({ queue }: Shard) => void queue.learnLanes().catch(() => {}),
    };
    this.#control = new Control(connection, this.#shards, hooks, ownLogger);
    this.#heartbeat = new Heartbeat(
      core.leaseMs,
      () => this.#dispatcher.sessions,
      core.logger,
      events,
    );
  }

  /** Boot id of this worker, as the registry and the logs show it. */
  get id(): string {
    return this.#core.id;
  }

  /** How many handlers run now. */
  get running(): number {
    return this.#core.running;
  }

  /** What the registry is told at each tick. */
  get #now(): Pick<RegisteredWorker, 'running' | 'draining' | 'longest' | 'leftovers'> {
    const held = [...this.#dispatcher.sessions].filter(({ oldest }) => oldest < Infinity);
    held.sort((a, b) => a.oldest - b.oldest);
    const longest = held.slice(0, LONGEST_RUNS).flatMap(({ longest }) => longest ?? []);
    const { closing: draining, leftovers } = this.#core;
    return { running: this.running, draining, longest, leftovers: leftovers.count };
  }

  /** Whether this worker lives and takes work, and if not, why. Does no I/O. */
  health(): WorkerHealth {
    const { id, memory, renewal, stalls, leftovers } = this.#core;
    const seen = this.#shards.map(({ name, intake, tick, pulse }) => ({
      name,
      intake,
      tick,
      pulse,
    }));
    // Of several it is said which.
    const words = (of: (one: (typeof seen)[number]) => string) =>
      seen
        .filter((one) => of(one) !== '')
        .map((one) => (seen.length === 1 ? of(one) : `${one.name}: ${of(one)}`))
        .join('; ');
    const verdict = judge({
      state: this.#state,
      intakeDown: words(({ intake }) => intake.down),
      intakeHeld: words(({ intake }) => intake.held),
      intakeOver: seen.some(({ intake }) => intake.over),
      stalled: stalls.said,
      full: memory.said,
      renewalDown: renewal.down,
      leftovers: leftovers.count,
      concurrency: this.#concurrency,
      silentMs: Math.max(...seen.map(({ pulse }) => pulse.silentMs)),
      sinceTickMs: Math.max(...seen.map(({ tick }) => tick.sinceMs)),
      tickLateMs: Math.max(...seen.map(({ tick }) => tick.lateMs)),
    });
    const { running } = this;
    const about = { worker: id, queue: this.#queue, state: this.#state };
    return { ...about, ...verdict, running, concurrency: this.#concurrency };
  }

  /**
   * Registers the worker and begins to take work. A Redis that answers and cannot be used yet (a cluster
   * that is down, a failover, a full server) is waited for; that there is none is told at once.
   * @throws ServerError · ConnectionError · ClosedError when it was closed before or meanwhile ·
   * InvalidOptionError when it has no handler and nobody pulls. After any of the first two it may be
   * started again.
   */
  async start(options: StartOptions = {}): Promise<this> {
    const { unavailableMs } = checkOptions<Required<StartOptions>>(startOptions, options);
    if (this.#closing) throw new ClosedError('worker');
    if (this.#pull?.begun === false)
      throw new InvalidOptionError(
        'handler',
        undefined,
        '`handler` for all tasks, `handlers` by task, or `subRequests()` called before the start',
      );
    this.#starting ??= this.#start(unavailableMs).catch((error: unknown) => {
      this.#starting = undefined;
      if (this.#state === 'starting') this.#state = 'new';
      // A connection that was closed while it was made says so in words of its own.
      throw this.#closing && !(error instanceof ClosedError) ? new ClosedError('worker') : error;
    });
    await this.#starting;
    return this;
  }

  /**
   * The work of the queue for a consumer to pull, where the worker has neither `handler` nor `handlers`:
   *
   * ```ts
   * for await (const s of worker.subRequests()) s.succeed(await work(s.payload));
   * ```
   *
   * The first `next()` starts the worker. No more is taken than is asked for, and at most `concurrency`
   * are out, which is given out and not settled. Several consumers share the demand. Leaving the loop
   * takes no more; what is out stays with the consumer until it settles it, under a lease that is
   * renewed. `close()` ends the loop, waits for what is out, and gives back what is left.
   * @throws InvalidOptionError when the worker has a handler · ClosedError
   */
  subRequests<Payload = unknown, Result = unknown>(
    options: SubRequestsOptions = {},
  ): AsyncIterable<SubRequest<Payload, Result>> {
    const checked = checkOptions<SubRequestsOptions>(subRequestsOptions, options);
    const pull = this.#pull;
    if (!pull)
      throw new InvalidOptionError(
        'subRequests',
        'handler',
        'a worker without `handler` and `handlers`',
      );
    if (this.#closing) throw new ClosedError('worker');
    pull.begun = true;
    const start = () => this.start();
    return { [Symbol.asyncIterator]: () => new SubRequests(pull, start, checked) };
  }

  /** Its first connection is there before anybody listens to this. */
  readonly #onReady = () => this.#core.events.tell('reconnected', { connection: 'calls' });

  async #start(forMs: number): Promise<void> {
    this.#state = 'starting';
    const { connection } = this.#core;
    const patience = new Patience(connection, this.id, { forMs, signals: [this.#ending.signal] });
    await patience.reach().catch((error: unknown) => {
      throw this.#closing ? new ClosedError('worker') : error;
    });
    if (this.#closing) throw new ClosedError('worker');
    const { client } = connection;
    client.off('ready', this.#onReady);
    client.on('ready', this.#onReady);
    await Promise.all(this.#shards.map((shard) => this.#register(shard, patience)));
    if (this.#closing) throw new ClosedError('worker');
    this.#heartbeat.start();
    this.#control.start();
    for (const shard of this.#shards) shard.start();
    this.#state = 'running';
    const { handlers, leaseMs, logger } = this.#core;
    const about = { queue: this.#queue, concurrency: this.#concurrency, tasks: handlers.tasks };
    logger.info({ ...about, leaseMs }, 'worker started');
  }

  async #register(shard: Shard, patience: Patience): Promise<void> {
    this.#registrations += 1;
    try {
      await patience.call(() => shard.register());
    } catch (error) {
      if (error instanceof ServerError) this.#registrations -= 1;
      if (this.#closing) throw new ClosedError('worker');
      const cause = error instanceof IndeterminateError ? error.cause : error;
      if (!(cause instanceof PieceworkError)) throw cause;
      const why = await this.#core.connection.explained(cause);
      if (this.#shards.length > 1) why.message = `${shard.name}: ${why.message}`;
      throw why;
    }
  }

  /**
   * Takes no more work, waits up to `timeoutMs` for running handlers, aborts those that are left and
   * gives them back unfinished. The last quarter of that time, a second at most, is between the abort and
   * the end: handlers may clear up in it. @default timeoutMs 30000
   */
  close(options: { timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs } = checkOptions<{ timeoutMs: number }>(
      { timeoutMs: option.ms(0, 2_147_483_647, 30_000) },
      options,
    );
    this.#ending.abort();
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
    this.#pull?.end();
    for (const shard of this.#shards) shard.rest();
    // Whoever ends in a moment need not say that it drains.
    if (started && this.running > 0) for (const shard of this.#shards) shard.tellRegistry();
    if (this.#starting) await this.#within(this.#starting);
    for (const session of this.#dispatcher.sessions) session.leave();
    await Promise.all(this.#shards.map(({ intake }) => intake.stop()));
    this.#core.unblocking.close();
    const clearUpMs = Math.min(CLEAR_UP_MS, timeoutMs / 4);
    await this.#drained(timeoutMs - clearUpMs);
    const aborts = this.#dispatcher.size > 0;
    if (this.running > 0) {
      const about = { running: this.running, requests: [...this.#dispatcher.names].slice(0, 10) };
      this.#core.logger.warn(about, 'handlers did not end in time; their work goes to others');
    }
    const end = performance.now() + clearUpMs;
    for (const session of this.#dispatcher.sessions) session.abandon();
    const reachable = this.#core.connection.client.status === 'ready';
    await this.#drained(reachable ? GIVE_BACK_MS : UNREACHABLE_MS);
    while (aborts && this.running > 0 && performance.now() < end) await pause(5);
    this.#heartbeat.stop();
    await this.#within(this.#control.stop());
    await this.#core.renewal.stop();
    this.#core.ended = true;
    this.#core.stalls.stop();
    this.#core.flood.flush();
    await this.#within(this.#ofAllShards((shard) => shard.stopAgenda()));
    // Before it departs: the last one to leave clears them away.
    await this.#within(this.#ofAllShards(({ errors }) => errors.flush()));
    const departed = () => this.#ofAllShards(({ queue }) => queue.depart(this.id));
    if (this.#registrations > 0 && !(await this.#within(departed())))
      this.#core.logger.warn('the registry forgets this worker by itself');
    // A connection that is not ours is closed at once, by doing nothing.
    const { connection } = this.#core;
    connection.client.off('ready', this.#onReady);
    if (!(await this.#within(connection.close()))) connection.cut();
    this.#state = 'closed';
    if (started) this.#core.logger.info('worker closed');
  }

  /** Resolves when `work` is done in each; what fails in one holds up none. */
  async #ofAllShards(work: (shard: Shard) => Promise<void>): Promise<void> {
    const done = await Promise.allSettled(this.#shards.map(work));
    for (const one of done) if (one.status === 'rejected') throw one.reason;
  }

  /** Whether `work` succeeded in time; there is little of it when the server cannot be reached, or hangs. */
  async #within(work: Promise<void>): Promise<boolean> {
    const { status } = this.#core.connection.client;
    const reachable = status === 'ready' && !this.#hangs;
    const done = work.then(
      () => true,
      () => false,
    );
    const fallback = () => {
      this.#hangs = true;
      return false;
    };
    return pTimeout(done, { milliseconds: reachable ? GIVE_BACK_MS : UNREACHABLE_MS, fallback });
  }

  /** Waits until nothing is held and no call is under way any more. */
  async #drained(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    const busy = () => this.#dispatcher.size > 0 || !this.#core.settled;
    while (busy() && performance.now() < end) await pause(5);
  }
}

/**
 * The workers of several queues in one process. Order is strict there: every lane is named in the pops
 * from the start, where others name one only once they heard that it is used; and what is due is moved
 * at its time, where others look at their pace.
 */
export interface Company {
  readonly slots: SlotPool;
}
