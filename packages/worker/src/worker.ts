import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import {
  ClosedError,
  Connection,
  checkOptions,
  IndeterminateError,
  InvalidOptionError,
  idleFactor,
  type Jsonify,
  option,
  Patience,
  PieceworkError,
  ServerError,
  shardNames,
  type TraceContext,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import { Closing } from './closing.js';
import { ControlListener } from './control-listener.js';
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
import { Registration } from './registration.js';
import { Events, type WorkerEvents } from './report/events.js';
import { judge, type WorkerHealth, type WorkerState } from './report/health.js';
import { openLog } from './report/own-log.js';
import { SlotPool } from './shared/slots.js';
import { WorkerContext } from './shared/worker-context.js';

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
 * time and more than once. Listeners may follow what happens meanwhile (WorkerEvents); none is needed.
 */
export class Worker extends EventEmitter<WorkerEvents> implements AsyncDisposable {
  readonly #context: WorkerContext;
  readonly #shards: readonly Shard[];
  readonly #queue: string;
  readonly #concurrency: number;
  readonly #heartbeat: Heartbeat;
  readonly #pull: Pull | undefined;
  readonly #control: ControlListener;
  readonly #dispatcher: Dispatcher;
  readonly #registration: Registration;
  #starting: Promise<void> | undefined;
  #state: WorkerState = 'new';
  /** With how many shards it is, or may be, registered. */
  #registrations = 0;
  #registering: readonly Promise<void>[] = [];
  #closing: Promise<void> | undefined;
  /** What an error calls it when it is closed. */
  #called = 'worker';
  readonly #ending = new AbortController();

  /** @throws InvalidOptionError */
  constructor(options: WorkerOptions);
  /** @internal See `SharingWorker`. */
  constructor(options: WorkerOptions, shared: SharedSlots | undefined);
  constructor(options: WorkerOptions, shared?: SharedSlots) {
    super();
    const checked = checkOptions<
      Required<
        Omit<
          WorkerOptions,
          'handler' | 'handlers' | 'backoff' | 'slowMs' | 'metrics' | 'logger' | 'telemetry'
        >
      > &
        WorkerOptions
    >(workerOptions, options);
    const pool = shared?.slots ?? new SlotPool(checked.concurrency);
    this.#queue = checked.queue;
    this.#concurrency = pool.capacity;
    const names = shardNames(checked.queue, checked.shards);
    const member = { sessions: () => this.#dispatcher.sessions, running: () => this.running };
    const slots = pool.joinAll(member, names.length);
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
    const logger = checked.logger ?? openLog('info', process.stderr.isTTY ? 'text' : 'json');
    // What handlers log is there because somebody wants to see it; what the worker logs, by default only warnings.
    const handlerLogger = logger.child({ worker: id });
    const ownLogger = checked.logger ? handlerLogger : handlerLogger.child({}, { level: 'warn' });
    const { leaseMs, maxBlockMs, telemetry } = checked;
    const events = new Events(this, ownLogger);
    const queues = {
      shared: () => this.#shards.some((shard) => shard.slots.shared),
      fleet: () => Math.max(1, ...this.#shards.map(({ pulse }) => pulse.fleet)),
    };
    const parts = {
      id,
      connection,
      handlers,
      isolation: pool.isolation,
      leaseMs,
      idleFactor: idleFactor(checked.idle),
      renewal: new Renewal({
        connection,
        ...{ worker: id, leaseMs, maxBlockMs, logger: ownLogger },
        // Each session has a permit, and there are no more permits than slots.
        rows: pool.capacity,
      }),
      quantumMs: checked.quantumMs,
      settleDelayMs: checked.settleDelayMs,
      maxResultBytes: checked.maxResultBytes,
      jsonText: checked.jsonText,
      backoff: checked.backoff,
      runsOf:
        telemetry &&
        ((task: string, trace: TraceContext | undefined) =>
          telemetry.runs({ queue: checked.queue, task, worker: id }, trace)),
      slowMs: checked.slowMs,
      logger: ownLogger,
      handlerLogger,
      events,
    };
    const context = new WorkerContext(parts, queues);
    this.#context = context;
    const about = {
      pid: process.pid,
      host: hostname(),
      concurrency: checked.concurrency,
      tasks: handlers.tasks,
      startedAt: Date.now(),
    };
    this.#registration = new Registration(context, about, {
      shards: () => this.#shards,
      sessions: () => this.#dispatcher.sessions,
      // What a start waits for is not reported: the report that registers the worker ends it.
      health: () => (this.#state === 'starting' ? { ready: true, why: [] } : this.health()),
    });
    const ofShard = {
      info: (shard: Shard) => this.#registration.infoOf(shard),
      onTokens: (shard: Shard, tokens: readonly string[], most: number) =>
        this.#dispatcher.dispatch(shard, tokens, most),
      onParked: (shard: Shard, requests: readonly { id: string; generation: number }[]) =>
        this.#dispatcher.enterAll(
          shard,
          requests.map(({ id, generation }) => ({ id, generation, epochs: [] })),
        ),
      sessions: () => this.#dispatcher.size,
      onPaused: (shard: Shard) => this.#dispatcher.leavePaused(shard),
    };
    const prompt = shared !== undefined;
    this.#shards = names.map((name, i) => {
      const shard = new Shard(context, name, slots[i] as (typeof slots)[number], prompt, ofShard);
      if (shared) shard.queue.lanes.learnAll();
      return shard;
    });
    const shards = new WorkerShards(this.#shards, (about, call) => context.insist(about, call));
    this.#dispatcher = new Dispatcher(context, shards);
    const hooks = {
      onRequest: ({ id, generation }: { id: string; generation: number }) =>
        this.#dispatcher.of(id, generation)?.refresh(),
      onQueue: (shard: Shard) => shard.readPause(),
      onLane: ({ queue }: Shard, priority: number) => queue.lanes.learn(priority),
      // Without an answer, the next tick contains them.
      onMaybeMissed: ({ queue }: Shard) => void queue.learnLanes().catch(() => {}),
    };
    this.#control = new ControlListener(context, this.#shards, hooks);
    this.#heartbeat = new Heartbeat(
      context.leaseMs,
      () => this.#dispatcher.sessions,
      context.logger,
      events,
    );
    events.measuring.meter = checked.metrics?.watch(this);
  }

  /** Boot id of this worker, as the registry and the logs show it. */
  get id(): string {
    return this.#context.id;
  }

  /** How many handlers run now. */
  get running(): number {
    return this.#context.running;
  }

  /** Whether this worker is live and takes work, and if not, why. Does no I/O. */
  health(): WorkerHealth {
    const { connection, id, isolation, memory, renewal, stalls, leftovers, events } = this.#context;
    const seen = this.#shards;
    // With several shards, each sentence names its shard.
    const words = (of: (shard: Shard) => string) =>
      seen
        .filter((one) => of(one) !== '')
        .map((one) => (seen.length === 1 ? of(one) : `${one.name}: ${of(one)}`))
        .join('; ');
    const verdict = judge({
      state: this.#state,
      intakeDown: words(({ intake }) => intake.down),
      refused: events.refused,
      isolated: isolation.said,
      intakeMoving: words(({ intake }) => intake.moving),
      intakeEnded: seen.some(({ intake }) => intake.ended),
      stalled: stalls.said,
      full: memory.said,
      renewalDown: renewal.down,
      leftovers: leftovers.count,
      concurrency: this.#concurrency,
      trouble: connection.trouble,
      silentMs: Math.max(...seen.map(({ pulse }) => pulse.silentMs)),
      sinceTickMs: Math.max(...seen.map(({ tick }) => tick.sinceMs)),
      tickLateMs: Math.max(...seen.map(({ tick }) => tick.lateMs)),
    });
    const { running } = this;
    const about = { worker: id, queue: this.#queue, state: this.#state };
    return { ...about, ...verdict, running, concurrency: this.#concurrency };
  }

  /**
   * Registers the worker and begins to take work. Waits for a Redis that answers but cannot be used yet (a cluster
   * that is down, a failover, a full server); rejects at once when there is none. A start that fails closes the worker,
   * with all that it opened: to try again, make a new one.
   * @throws ServerError · ConnectionError · ClosedError when it was closed before or meanwhile · InvalidOptionError when
   * it has no handler and `subRequests` was not called: it is not closed then
   */
  async start(options: StartOptions = {}): Promise<this> {
    const { unavailableMs } = checkOptions<Required<StartOptions>>(startOptions, options);
    if (this.#closing) throw new ClosedError(this.#called);
    if (this.#pull?.begun === false)
      throw new InvalidOptionError(
        'handler',
        undefined,
        '`handler` for all tasks, `handlers` by task, or `subRequests()` called before the start',
      );
    this.#starting ??= this.#start(unavailableMs).catch((error: unknown) => this.#failed(error));
    await this.#starting;
    return this;
  }

  /** Closes what the start opened, or it would keep the process alive. */
  async #failed(error: unknown): Promise<never> {
    // The error of a connection that was closed while it was made is another one.
    if (this.#closing) throw error instanceof ClosedError ? error : new ClosedError('worker');
    this.#starting = undefined; // The close would wait for it.
    this.#called = 'worker, whose start failed,';
    this.#pull?.refuse(() => true, error);
    await this.close({ timeoutMs: 0 });
    throw error;
  }

  /**
   * The work of the queue for a consumer to pull, where the worker has neither `handler` nor `handlers`:
   *
   * ```ts
   * for await (const s of worker.subRequests()) s.succeed(await work(s.payload));
   * ```
   *
   * The first `next()` starts the worker. It takes no more than was asked for, and at most `concurrency` are out:
   * given to a consumer and not settled. Several consumers share the demand. After the loop was left, nothing more
   * is taken; the consumer keeps what is out until it settles it, under a lease that is renewed. `close()` ends the
   * loop, waits for what is out, and gives back what is left.
   * @throws InvalidOptionError when the worker has a handler · ClosedError
   */
  subRequests<Payload = unknown, Result = unknown>(
    options: SubRequestsOptions = {},
  ): AsyncIterable<SubRequest<Jsonify<Payload>, Result>> {
    const checked = checkOptions<SubRequestsOptions>(subRequestsOptions, options);
    const pull = this.#pull;
    if (!pull)
      throw new InvalidOptionError(
        'subRequests',
        'handler',
        'a worker without `handler` and `handlers`',
      );
    if (this.#closing) throw new ClosedError(this.#called);
    pull.begun = true;
    const start = () => this.start();
    return { [Symbol.asyncIterator]: () => new SubRequests(pull, start, checked) };
  }

  /** This listener is added after the first connection. */
  readonly #onReady = () => this.#context.events.emit('reconnected', { connection: 'calls' });

  async #start(forMs: number): Promise<void> {
    this.#state = 'starting';
    const { connection } = this.#context;
    const patience = new Patience(connection, this.id, { forMs, signals: [this.#ending.signal] });
    await patience.reach();
    if (this.#closing) throw new ClosedError('worker');
    const { client } = connection;
    client.off('ready', this.#onReady);
    client.on('ready', this.#onReady);
    this.#registration.start();
    this.#registering = this.#shards.map((shard) => this.#register(shard, patience));
    await Promise.all(this.#registering);
    if (this.#closing) throw new ClosedError('worker');
    this.#heartbeat.start();
    this.#control.start();
    for (const shard of this.#shards) shard.start();
    this.#state = 'running';
    const { handlers, leaseMs, logger } = this.#context;
    const about = { queue: this.#queue, concurrency: this.#concurrency, tasks: handlers.tasks };
    logger.info({ ...about, leaseMs }, 'worker started');
  }

  async #register(shard: Shard, patience: Patience): Promise<void> {
    this.#registrations += 1;
    try {
      await patience.call(() => shard.register());
    } catch (error) {
      // A script that lacks a right may have written a part.
      if (error instanceof ServerError && error.code !== 'NO_RIGHT') this.#registrations -= 1;
      if (this.#closing) throw new ClosedError('worker');
      const cause = error instanceof IndeterminateError ? error.cause : error;
      if (!(cause instanceof PieceworkError)) throw cause;
      const why = await this.#context.connection.explained(cause);
      if (this.#shards.length > 1) why.message = `${shard.name}: ${why.message}`;
      throw why;
    }
  }

  /**
   * Takes no more work, waits up to `timeoutMs` for running handlers, aborts those that are left and gives their
   * work back unfinished. The last quarter of that time, a second at most, is between the abort and the end: in it
   * handlers may clean up. A worker listens for no signal: call this when the process receives SIGTERM.
   * @default timeoutMs 30000
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
    const { logger, connection } = this.#context;
    const started = this.#state === 'running';
    this.#state = 'closing';
    if (started) logger.info({ running: this.running, timeoutMs }, 'worker closing');
    this.#context.closing = true;
    this.#pull?.close();
    for (const shard of this.#shards) shard.drain();
    // A worker that closes in a moment does not register that it drains.
    if (started && this.running > 0) for (const shard of this.#shards) shard.refreshRegistry();
    const closing = new Closing({
      context: this.#context,
      shards: this.#shards,
      dispatcher: this.#dispatcher,
      heartbeat: this.#heartbeat,
      control: this.#control,
    });
    // A registration under way would otherwise be carried out after the worker has left the registry.
    await closing.within(Promise.allSettled([this.#starting, ...this.#registering]));
    await closing.stopTaking();
    await closing.drain(timeoutMs);
    await closing.closeParts();
    await closing.deregister(this.#registrations > 0, started);
    this.#registration.close();
    connection.client.off('ready', this.#onReady);
    await closing.closeConnection();
    this.#state = 'closed';
    if (started) logger.info('worker closed');
  }
}

/**
 * Given to the workers of several queues in one process. Their order is strict: every lane is named in the pops
 * from the start, while others name a lane only once they know that it is used; and the agenda ticks when something
 * is due, while others tick at their own pace.
 */
export interface SharedSlots {
  readonly slots: SlotPool;
}

/** `Worker` as Piecework's own packages call it: for the workers of several queues that share their slots. */
export const SharingWorker: new (options: WorkerOptions, shared: SharedSlots) => Worker = Worker;
