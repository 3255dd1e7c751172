import {
  type Entry,
  type Minted,
  type Outcome,
  RequestCommands,
  type Settled,
} from '@piecework/protocol';
import { Running } from './running.js';
import type { WorkerCore } from './worker-core.js';

/** Most outcomes of one settle, and most bytes, about: a script runs while nobody else is served. */
const SETTLE_ITEMS = 500;
const SETTLE_BYTES = 1_000_000;

/**
 * What a worker process has to do with one request: the permits it holds, the handlers that run
 * under them, and the outcomes that wait to be settled.
 *
 *   entering → working → leaving → over
 *
 * working: it holds permits and reads as many sub-requests as they allow.
 * leaving: it reads no more; each handler that ends gives its permit back. It leaves when a read
 *          brought less than was asked (dry), at the end of its time slice when somebody else waits,
 *          when its lease is lost, and when the worker closes. A new token makes it enter again.
 * over:    nothing held, nothing running; forgotten.
 *
 * One call at a time: the replies carry absolute permits, so their order must be that of the calls.
 * What a crash leaves: permits, which expire with the lease, and entries, which a tend reclaims.
 */
export class Engagement {
  readonly id: string;
  readonly generation: number;
  readonly #core: WorkerCore;
  readonly #commands: RequestCommands;
  readonly #onTokens: (tokens: readonly string[]) => void;
  readonly #onOver: (engagement: Engagement) => void;
  readonly #running = new Map<string, Running>();
  #outcomes: Outcome[] = [];
  #mode: 'entering' | 'working' | 'leaving' | 'over' = 'entering';
  #permits = 0;
  #reserved = 0;
  #held = 0;
  #dueNow = 0;
  #noted = 0;
  #task = '';
  #priority = 0;
  #sliceStart = 0;
  /** Own monotonic clock: the lease is not believed beyond this. */
  #until = 0;
  #renewedAt = 0;
  #queued = 0;
  #kicked = false;
  #tail: Promise<void> = Promise.resolve();

  constructor(
    core: WorkerCore,
    id: string,
    generation: number,
    hooks: {
      onTokens: (tokens: readonly string[]) => void;
      onOver: (engagement: Engagement) => void;
    },
  ) {
    this.#core = core;
    this.id = id;
    this.generation = generation;
    this.#commands = new RequestCommands(core.connection, id);
    this.#onTokens = hooks.onTokens;
    this.#onOver = hooks.onOver;
  }

  get holdsPermits(): boolean {
    return this.#permits > 0;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** Turns tokens (their epochs) into permits for up to `want` slots, and goes to work. */
  enter(epochs: readonly string[], want: number): void {
    this.#reserved += want;
    this.#account();
    const op = this.#core.nextOp();
    this.#exclusive(async () => {
      const asked = performance.now();
      const { id, leaseMs, handlers } = this.#core;
      const entered = await this.#core
        .insist(() =>
          this.#commands.enter(this.generation, id, op, want, leaseMs, handlers.served, epochs),
        )
        .finally(() => {
          this.#reserved -= want;
        });
      if (entered.verdict === 'complete' || entered.verdict === 'gone') {
        this.#end(entered.verdict === 'complete' ? entered.outcome : undefined);
        return;
      }
      if (entered.verdict === 'unserved') {
        this.#core.later(() => this.#core.queue.park(this.id, this.generation, entered.task));
        return;
      }
      this.#extend(asked);
      this.#permits = entered.permits;
      this.#task = entered.task;
      this.#priority = entered.priority;
      this.#dueNow = entered.dueNow;
      this.#account();
      this.#putBack(entered.mint, entered.epoch);
      if (this.#permits > 0 && want > 0) {
        this.#mode = 'working';
        this.#sliceStart = performance.now();
      }
      await this.#pump();
    });
  }

  /** Reads no more; gives permits back as handlers end. */
  leave(): void {
    this.#mode = 'leaving';
    this.#kick();
  }

  /** Aborts what still runs and gives it back unfinished. */
  abandon(): void {
    for (const running of this.#running.values()) {
      running.abort('abandoned', 'the worker closes');
      this.#outcomes.push({ entry: running.entry, kind: 'b' });
    }
    this.#running.clear();
    this.leave();
  }

  /** Extends the lease if nothing else did for `everyMs`; tells the handlers when it is lost. */
  async renew(everyMs: number): Promise<void> {
    const asked = performance.now();
    if (this.#permits === 0 || asked - this.#renewedAt < everyMs) return;
    const reports: number[] = [];
    for (const running of this.#running.values()) {
      const n = running.takeProgress();
      if (n !== undefined) reports.push(running.index, n);
    }
    const { id, leaseMs } = this.#core;
    const renewed = await this.#commands.renew(this.generation, id, leaseMs, reports);
    if (renewed.verdict === 'ok') this.#extend(asked);
    else this.#lose(renewed.verdict === 'gone' ? 'the request is gone' : 'the lease was withdrawn');
  }

  /** Stops believing in the lease by the own clock, before the server does. */
  fence(): void {
    const marginMs = this.#core.leaseMs / 10;
    if (this.#permits > 0 && performance.now() >= this.#until - marginMs)
      this.#lose('the lease ended');
  }

  #lose(why: string): void {
    this.#core.logger.warn({ worker: this.#core.id, requestId: this.id, why }, 'lease lost');
    this.#permits = 0;
    for (const running of this.#running.values()) running.abort('lost', why);
    this.#account();
    this.leave();
  }

  #extend(asked: number): void {
    this.#until = Math.max(this.#until, asked + this.#core.leaseMs);
    this.#renewedAt = asked;
  }

  /** Settles, reads and starts until there is nothing to do but wait for handlers. */
  async #pump(): Promise<void> {
    while (this.#mode !== 'over') {
      this.fence();
      // Nothing may be awaited between this look and the settle: what ends meanwhile has to be asked for.
      if (this.#sliceIsOver()) await this.#askToStay();
      const free = this.#mode === 'working' ? this.#permits - this.#running.size : 0;
      const keep = this.#mode === 'working' ? this.#permits : this.#running.size;
      const read = this.#dueNow > 0 ? 0 : Math.max(0, free);
      if (this.#outcomes.length > 0 || read > 0 || keep < this.#permits) {
        await this.#settle(Math.max(keep, this.#running.size), read);
      } else if (free > 0) {
        await this.#take(free);
      } else {
        break;
      }
    }
    const idle = this.#permits === 0 && this.#running.size === 0 && this.#outcomes.length === 0;
    if (idle && this.#queued === 1 && this.#mode !== 'over') this.#end(undefined);
  }

  #sliceIsOver(): boolean {
    const age = performance.now() - this.#sliceStart;
    return this.#mode === 'working' && this.#outcomes.length > 0 && age >= this.#core.quantumMs;
  }

  /** Asks before leaving: nobody waits is by far the most frequent answer, and costs one call. */
  async #askToStay(): Promise<void> {
    const contended = await this.#core.insist(() =>
      this.#core.queue.contended(this.id, this.#priority),
    );
    if (contended && this.#mode === 'working') this.#mode = 'leaving';
    this.#sliceStart = performance.now();
  }

  async #settle(keep: number, read: number): Promise<void> {
    const outcomes = this.#nextOutcomes();
    const running = this.#running.size;
    const asked = performance.now();
    const { id, leaseMs } = this.#core;
    const { settled, entries } = await this.#core.insist(() =>
      this.#commands.settle(this.generation, id, { leaseMs, keep, running, read }, outcomes),
    );
    if (settled.verdict !== 'ok') {
      this.#end(settled.verdict === 'complete' ? settled.outcome : undefined);
      return;
    }
    this.#extend(asked);
    this.#apply(settled);
    this.#startUpTo(entries);
    const dry = entries.length < read && settled.dueNow === 0;
    if (dry && this.#mode === 'working') this.#mode = 'leaving';
    this.#account();
    this.#putBack(settled.mint, settled.epoch);
  }

  /** What fits into one call. */
  #nextOutcomes(): Outcome[] {
    let bytes = 0;
    let count = 0;
    for (const outcome of this.#outcomes) {
      bytes += outcome.kind === 'b' ? 0 : outcome.value.length;
      if (count === SETTLE_ITEMS || (count > 0 && bytes > SETTLE_BYTES)) break;
      count += 1;
    }
    return this.#outcomes.splice(0, count);
  }

  async #take(max: number): Promise<void> {
    const entries = await this.#core.insist(() =>
      this.#commands.take(this.generation, this.#core.id, max),
    );
    if (entries === 'gone') return this.#end(undefined);
    if (entries === 'lost') return this.#lose('the lease was withdrawn');
    // Fewer than asked: no more is due, so the next round reads new ones.
    if (entries.length < max) this.#dueNow = 0;
    this.#startUpTo(entries);
    this.#account();
  }

  #apply(settled: Settled): void {
    this.#permits = settled.permits;
    this.#priority = settled.priority;
    this.#dueNow = settled.dueNow;
    if (settled.nextDue > 0 && settled.nextDue !== this.#noted) {
      this.#noted = settled.nextDue;
      this.#core.later(() => this.#core.queue.note(this.id, this.generation, settled.nextDue));
    }
  }

  /** Starts what was read up to the permits in hand; the rest goes back unstarted. */
  #startUpTo(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (this.#running.size < this.#permits) this.#start(entry);
      else this.#outcomes.push({ entry: entry.entry, kind: 'b' });
    }
  }

  #start(entry: Entry): void {
    const handler = this.#core.handlers.for(this.#task);
    if (!handler) throw new Error(`no handler for task ${this.#task}`);
    const running = new Running(this.id, entry, this.#core.logger);
    this.#running.set(entry.entry, running);
    void running.run(handler, entry.payload, this.#core.maxResultBytes).then((outcome) => {
      if (this.#running.get(entry.entry) !== running) return;
      this.#running.delete(entry.entry);
      if (outcome) this.#outcomes.push(outcome);
      this.#kick();
    });
  }

  /** Puts minted tokens out: when it leaves a free slot behind, by returning and taking in one call. */
  #putBack(mint: number, epoch: number): void {
    if (mint === 0) return;
    const minted: Minted = {
      id: this.id,
      generation: this.generation,
      mint,
      epoch,
      priority: this.#priority,
    };
    const { slots, queue } = this.#core;
    const free = this.#mode === 'leaving' ? slots.free : 0;
    if (free === 0) {
      this.#core.later(() => queue.push(minted));
      return;
    }
    // The slots are kept until the tokens are here, or the intake would pop for them as well.
    slots.take(free);
    this.#core.later(async () => {
      const tokens = await queue.swap(minted, free).finally(() => slots.take(-free));
      this.#onTokens(tokens);
    });
  }

  #end(outcome: string | undefined): void {
    this.#mode = 'over';
    this.#permits = 0;
    for (const running of this.#running.values()) running.abort('abandoned', 'the request ended');
    this.#running.clear();
    this.#outcomes = [];
    this.#account();
    if (outcome) this.#core.later(() => this.#core.queue.finish(this.id, this.generation, outcome));
  }

  #account(): void {
    const holds = Math.max(this.#permits, this.#running.size) + this.#reserved;
    if (holds !== this.#held) this.#core.slots.take(holds - this.#held);
    this.#held = holds;
  }

  /** Pumps once everything that ends in this turn of the event loop has ended. */
  #kick(): void {
    if (this.#kicked || this.#mode === 'over') return;
    this.#kicked = true;
    setImmediate(() => {
      this.#kicked = false;
      this.#exclusive(() => this.#pump());
    });
  }

  #exclusive(work: () => Promise<void>): void {
    this.#queued += 1;
    this.#tail = this.#tail
      .then(work)
      .catch((error: unknown) => {
        this.#core.logger.error(
          { err: error, worker: this.#core.id, requestId: this.id },
          'engagement failed',
        );
        this.#end(undefined);
      })
      .finally(() => {
        this.#queued -= 1;
        this.#account();
        if (this.#queued === 0 && this.#mode === 'over') this.#onOver(this);
      });
  }
}
