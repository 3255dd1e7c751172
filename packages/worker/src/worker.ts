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
  type Tick,
} from '@piecework/protocol';
import { nanoid } from 'nanoid';
import { pino } from 'pino';
import { Engagement } from './engagement.js';
import { Handlers } from './handler.js';
import { Intake } from './intake.js';
import { Leases } from './leases.js';
import { type WorkerOptions, workerOptions } from './options.js';
import { Slots } from './slots.js';
import { WorkerCore } from './worker-core.js';

/** How long a close may take beyond its timeout to give back what was not finished. */
const GIVE_BACK_MS = 5_000;

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
 * time and more than once.
 */
export class Worker implements AsyncDisposable {
  readonly #core: WorkerCore;
  readonly #intake: Intake;
  readonly #leases: Leases;
  readonly #agenda: Agenda;
  readonly #engagements = new Map<string, Engagement>();
  #state: 'new' | 'running' | 'closing' | 'closed' = 'new';
  #closing: Promise<void> | undefined;

  /** @throws InvalidOptionError */
  constructor(options: WorkerOptions) {
    const checked = checkOptions<
      Required<Omit<WorkerOptions, 'handler' | 'handlers' | 'logger'>> & WorkerOptions
    >(workerOptions, options);
    const handlers = new Handlers(checked.handler, checked.handlers);
    const connection = Connection.open(checked.redis);
    const core = new WorkerCore({
      id: `${hostname().replace(/[^A-Za-z0-9.-]/g, '')}-${process.pid}-${nanoid(8)}`,
      connection,
      queue: new QueueCommands(connection, checked.queue),
      handlers,
      slots: new Slots(checked.concurrency),
      leaseMs: checked.leaseMs,
      quantumMs: checked.quantumMs,
      maxResultBytes: checked.maxResultBytes,
      logger: checked.logger ?? pino({ name: 'piecework', level: 'warn' }, pino.destination(2)),
    });
    this.#core = core;
    const onTokens = (tokens: readonly string[]) => this.#dispatch(tokens);
    this.#intake = new Intake(connection, core.queue.keys, core.slots, core.logger, onTokens);
    this.#leases = new Leases(core.leaseMs, () => this.#engagements.values(), core.logger);
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
      onTick: (tick) => this.#enterParked(tick),
      onError: (error) => core.logger.warn({ err: error, worker: core.id }, 'tick failed'),
    });
  }

  /** Boot id of this worker, as the registry and the logs show it. */
  get id(): string {
    return this.#core.id;
  }

  /** How many handlers run now. */
  get running(): number {
    let count = 0;
    for (const engagement of this.#engagements.values()) count += engagement.runningCount;
    return count;
  }

  /**
   * Registers the worker and begins to take work.
   * @throws ServerError · ConnectionError · ClosedError when it was closed before
   */
  async start(): Promise<this> {
    if (this.#state === 'running') return this;
    if (this.#state !== 'new') throw new ClosedError('worker');
    this.#state = 'running';
    try {
      await this.#core.connection.check();
      await this.#agenda.tick();
    } catch (error) {
      this.#state = 'new';
      throw error;
    }
    if (this.#state !== 'running') return this;
    this.#agenda.start();
    this.#leases.start();
    this.#intake.start();
    return this;
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
    if (started) {
      await this.#intake.stop();
      for (const engagement of this.#engagements.values()) engagement.leave();
      await this.#drained(timeoutMs);
      for (const engagement of this.#engagements.values()) engagement.abandon();
      await this.#drained(GIVE_BACK_MS);
      this.#leases.stop();
      const settled = new AbortController();
      await Promise.race([this.#core.settled(), pause(GIVE_BACK_MS, settled.signal)]);
      settled.abort();
      this.#core.ended = true;
      await this.#agenda.stop();
      await this.#core.queue.depart(this.id).catch((error: unknown) => {
        this.#core.logger.warn(
          { err: error, worker: this.id },
          'the registry forgets this worker by itself',
        );
      });
    }
    await this.#core.connection.close();
    this.#state = 'closed';
  }

  /** Waits until nothing is held any more. */
  async #drained(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    while (this.#engagements.size > 0 && performance.now() < end) await pause(5);
  }

  /** Shares the free slots among the requests whose tokens came, and enters each. */
  #dispatch(tokens: readonly string[]): void {
    const arrived = new Map<string, { id: string; generation: number; epochs: string[] }>();
    for (const token of tokens) {
      const { id, generation, epoch } = parseToken(token);
      const key = `${id}~${generation}`;
      const known = arrived.get(key);
      if (known) known.epochs.push(epoch);
      else arrived.set(key, { id, generation, epochs: [epoch] });
    }
    // While closing, a token is entered for no slot: counted out and minted again for somebody else.
    const free = this.#state === 'running' ? this.#core.slots.free : 0;
    let left = arrived.size;
    let unshared = free;
    for (const { id, generation, epochs } of arrived.values()) {
      const want = Math.ceil(unshared / left);
      unshared -= want;
      left -= 1;
      this.#engagementOf(id, generation).enter(epochs, want);
    }
  }

  #engagementOf(id: string, generation: number): Engagement {
    const key = `${id}~${generation}`;
    let engagement = this.#engagements.get(key);
    if (!engagement) {
      engagement = new Engagement(this.#core, id, generation, {
        onTokens: (tokens) => this.#dispatch(tokens),
        onOver: () => this.#engagements.delete(key),
      });
      this.#engagements.set(key, engagement);
    }
    return engagement;
  }

  /** Enters, without a token, parked requests whose task this worker serves. */
  #enterParked(tick: Tick): void {
    if (this.#state !== 'running') return;
    for (const { id, generation, task } of tick.parked) {
      const free = this.#core.slots.free;
      if (free > 0 && this.#core.handlers.for(task))
        this.#engagementOf(id, generation).enter([], free);
    }
  }
}
