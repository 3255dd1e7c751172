import {
  type Complete,
  ControlCommands,
  type Entry,
  finishOnQueue,
  type Outcome,
  type QueueReply,
  reopenIfClosed,
  WorkerCommands,
} from '@piecework/protocol';
import type { Shard } from '../fetch/shard.js';
import { MOST_AT_ENTER } from '../shared/read-at-enter.js';
import type { WorkerContext } from '../shared/worker-context.js';

/** What `settle` answers. */
export type SettleReply = Awaited<ReturnType<SessionCalls['settle']>>['settled'];

/** What `enter` answers. */
export type Entered = Awaited<ReturnType<SessionCalls['enter']>>;

/**
 * The calls of one session, each sent again until the server answers it. The caller sends one at a time: the
 * replies contain absolute numbers of permits, so they must be applied in the order of the calls. Enters, takes
 * and settles are numbered when they are sent; each names the last one that was answered.
 */
export class SessionCalls {
  readonly #context: WorkerContext;
  readonly #shard: Shard;
  readonly #id: string;
  readonly #generation: number;
  readonly #commands: WorkerCommands;
  /** Number of the last call that was answered: a server that does not know this number lost writes. */
  #answered = 0;
  /** Epoch of the connection when an enter or a settle was sent last. */
  #epoch = 0;

  constructor(context: WorkerContext, shard: Shard, id: string, generation: number) {
    this.#context = context;
    this.#shard = shard;
    this.#id = id;
    this.#generation = generation;
    this.#commands = new WorkerCommands(context.connection, id);
  }

  /** Key of the request. */
  get key(): string {
    return this.#commands.keys.request;
  }

  /**
   * Turns tokens (their epochs) into permits for up to `want` slots, some of which may still be in use.
   */
  async enter(
    epochs: readonly string[],
    want: number,
    { withoutSlot: awaited }: { readonly withoutSlot: number },
    { ahead, quick }: { readonly ahead: number; readonly quick: number },
  ) {
    const op = this.#context.nextOp();
    const { id: worker, leaseMs, handlers } = this.#context;
    this.#epoch = this.#context.connection.epoch;
    const args = {
      generation: this.#generation,
      worker,
      op,
      want,
      leaseMs,
      epochs,
      tasks: handlers.served,
      most: MOST_AT_ENTER,
      awaited,
      ahead,
      quick,
      answered: this.#answered,
    };
    const entered = await this.#insist(() => this.#commands.enter(args));
    this.#answered = op;
    return entered;
  }

  /** Reads up to `max` sub-requests that wait for their next attempt and are due. */
  async take(max: number) {
    const op = this.#context.nextOp();
    const taken = await this.#insist(() =>
      this.#commands.take(this.#generation, this.#context.id, max, op, this.#answered),
    );
    this.#answered = op;
    return taken;
  }

  /**
   * Settles outcomes, gives permits back except `keep`, and reads up to `read` sub-requests, `ahead` of them without a
   * permit. `grantNo`: the grant under which all of these were read, '' when that is not known.
   */
  async settle(
    outcomes: readonly Outcome[],
    grantNo: string,
    {
      keep,
      running,
      read,
      ahead,
    }: {
      readonly keep: number;
      readonly running: number;
      readonly read: number;
      readonly ahead: number;
    },
  ) {
    const { id: worker, leaseMs } = this.#context;
    const op = this.#context.nextOp();
    const answered = this.#answered;
    const numbers = { op, grantNo, leaseMs, keep, running, read, ahead, answered };
    this.#epoch = this.#context.connection.epoch;
    const reply = await this.#insist(() =>
      this.#commands.settle(this.#generation, worker, numbers, outcomes),
    );
    this.#answered = op;
    return reply;
  }

  /** Extends the lease and stores what the handlers reported. Sent once: the next renewal repeats it. */
  renew(reports: readonly (number | string)[]) {
    const { id: worker, leaseMs } = this.#context;
    return this.#commands.renew(this.#generation, worker, leaseMs, reports);
  }

  /** The same, sent again until it is answered. */
  insistOnRenew(reports: readonly string[]) {
    return this.#insist(() => this.renew(reports));
  }

  /** Up to `count` entries that the server believes this worker owns. */
  pending(count: number): Promise<readonly string[]> {
    return this.#insist(() => this.#commands.pending(this.#context.id, count));
  }

  /** Registers that these suspects run now, with no more than `company` in this process. */
  async runSuspects(company: number, suspects: readonly Entry[]): Promise<'ok' | 'gone' | 'lost'> {
    const entries = suspects.map(({ entry }) => entry);
    const worker = this.#context.id;
    const reply = await this.#insist(() =>
      this.#commands.runAlone(this.#generation, worker, company, entries),
    );
    if (reply.verdict === 'gone' || reply.verdict === 'lost') return reply.verdict;
    // Before they run: if they end this process, another one tends the request as soon as the lease has ended.
    await this.#insist(() =>
      this.#shard.queue.scheduleTend(this.#id, this.#generation, reply.ends),
    );
    return 'ok';
  }

  keepsResults(): Promise<boolean> {
    return this.#insist(() => this.#commands.keepsResults());
  }

  /** Nothing more of the request starts anywhere for `ms`; the agenda ticks when that is over. */
  async holdRequest(ms: number, reason: '' | 'memory' = ''): Promise<void> {
    const control = new ControlCommands(this.#context.connection, this.#id);
    const held = await this.#insist(() => control.hold(this.#generation, ms, reason));
    if (held.verdict !== 'held') return;
    this.scheduleTend(held.until);
    // cure: the agenda ticks at the end of a hold
    this.#shard.tickWithin(ms);
  }

  /** Has the request tended at `time`, server time. Nobody waits for it. */
  scheduleTend(time: number): void {
    this.#later(() => this.#shard.queue.scheduleTend(this.#id, this.#generation, time));
  }

  /** Leaves the request to a worker that serves `task`. Nobody waits for it. */
  park(task: string): void {
    this.#later(() => this.#shard.queue.park(this.#id, this.#generation, task));
  }

  /** The request is complete, as the last enter or settle answered. Nobody waits for it. */
  complete(complete: Complete): void {
    const epoch = this.#epoch;
    const ended = { generation: this.#generation, ...complete };
    this.#context.later(this.#id, () =>
      finishOnQueue(epoch, this.#shard.queue, this.#commands, ended),
    );
  }

  #later(call: () => Promise<QueueReply>): void {
    const { queue } = this.#shard;
    this.#context.later(this.#id, () =>
      reopenIfClosed(queue, this.#commands, this.#generation, call),
    );
  }

  #insist<T>(call: () => Promise<T>): Promise<T> {
    return this.#context.insist(this.#id, call);
  }
}
