import {
  type Connection,
  ControlCommands,
  type ControlReply,
  checkOption,
  checkOptions,
  DroppedError,
  EndedError,
  ExpiredError,
  encodeToleratedFailures,
  finishOnQueue,
  InvalidOptionError,
  isOfLife,
  LostError,
  NotFoundError,
  option,
  Patience,
  type QueueCommands,
  QueueControlCommands,
  type QueueReply,
  type RequestOutcome,
  reopenIfClosed,
  type Shards,
  TIMES,
} from '@piecework/protocol';
import { type UpdateOptions, updateOptions } from './options.js';

/** What became of a cancelled request. */
export type Cancelled =
  /** Running handlers are being aborted; the request completes when the last of them has ended. */
  | { readonly status: 'cancelling' }
  /** The request is complete, perhaps since before the cancel, with this outcome. */
  | { readonly status: 'complete'; readonly outcome: RequestOutcome };

/** Whether a pause or a resume changed anything; false: it was so already. If another caller did it meanwhile, true. */
export interface Changed {
  readonly changed: boolean;
}

/** How often a call is repeated when its generation ended before the call arrived. */
const TRIES = 5;

/**
 * What is done to requests while they run, from any process. Each call has the agenda tend the request within a
 * minute, then changes the request's own side, then notifies the queue side. If this process dies in between, that
 * tend does the rest. `seen`: a generation that the request is known to have reached; 0: none. Another use of the id is
 * left alone.
 */
export class RequestControl {
  readonly #connection: Connection;
  readonly #shards: Shards;
  readonly #forMs: number;

  /** @param forMs how long each call is tried, in ms */
  constructor(connection: Connection, shards: Shards, forMs: number) {
    this.#connection = connection;
    this.#shards = shards;
    this.#forMs = forMs;
  }

  async cancel(id: string, seen: number): Promise<Cancelled> {
    const patience = await this.#reach(id);
    const request = new ControlCommands(this.#connection, id);
    const { epoch } = this.#connection;
    const { reply, generation, queue } = await this.#onCurrent(id, seen, patience, (current) =>
      request.cancel(current),
    );
    if (reply.verdict === 'complete') {
      const { outcome, spentAt } = reply;
      const ended = { generation, outcome, spentAt };
      await finishOnQueue(epoch, queue, request, ended, (call) => patience.call(call));
      return { status: 'complete', outcome: reply.outcome };
    }
    await this.#channelOf(queue).notifyWorkers('cancel', id, generation);
    await this.#notify({ id, generation, queue, patience }, () =>
      queue.scheduleTend(id, generation, 0),
    );
    return { status: 'cancelling' };
  }

  async pause(id: string, seen: number): Promise<Changed> {
    const patience = await this.#reach(id);
    const commands = new ControlCommands(this.#connection, id);
    const paused = await this.#onCurrent(id, seen, patience, (current) => commands.pause(current));
    if (paused.reply.verdict !== 'ok') throw new EndedError(id, paused.reply.verdict);
    await this.#channelOf(paused.queue).notifyWorkers('change', id, paused.generation);
    return { changed: !paused.wasPaused };
  }

  async resume(id: string, seen: number): Promise<Changed> {
    const { wasPaused } = await this.#change(id, seen, (commands, generation) =>
      commands.resume(generation),
    );
    return { changed: wasPaused };
  }

  async update(id: string, options: UpdateOptions, seen: number): Promise<void> {
    checkOption('id', id, option.name());
    const changes = checkOptions<UpdateOptions>(updateOptions, options);
    if (Object.keys(changes).length === 0) {
      throw new InvalidOptionError('options', options, 'limit, priority or toleratedFailures');
    }
    const { toleratedFailures: tolerated } = changes;
    const toleratedFailures =
      tolerated === undefined ? undefined : encodeToleratedFailures(tolerated);
    await this.#change(id, seen, (commands, generation) =>
      commands.update(generation, { ...changes, toleratedFailures }),
    );
  }

  /** Removes the generation that exists at the first call; one that begins meanwhile stays. */
  async drop(id: string, of: number): Promise<void> {
    const patience = await this.#reach(id);
    const commands = new ControlCommands(this.#connection, id);
    const seen = await this.#stateToDrop(id, of, commands, patience);
    for (let { generation } = seen, finished = false; !finished; ) {
      // A server that took over may have lost the drop; a repetition finds the request dropped, or gone.
      const { epoch } = this.#connection;
      const listed = this.#shards.named(seen.queue);
      const at = { id, generation, queue: listed };
      const dropped = await patience.call(() =>
        this.#announced(at, () => commands.drop(generation)),
      );
      // It was dropped, perhaps by an earlier try of this call, and a new generation has replaced the tombstone.
      if (dropped.verdict === 'gone') return;
      generation = dropped.generation;
      // Repeating a drop whose second half was cut off continues it.
      const queue = this.#shards.named(dropped.queue);
      finished = await patience.call(() => queue.finish(id, generation, 'dropped', 0, epoch));
      const back = await patience.call(() => commands.state());
      // cure: a drop that the server lost is repeated
      if (back?.generation === generation && back.status !== 'dropped') finished = false;
      if (finished) await this.#channelOf(queue).notifyWorkers('drop', id, generation);
    }
  }

  /**
   * The state of a request that is to be dropped. If there is none, the tombstone of a drop that was cut off may have
   * expired before the drop was repeated. The queue still lists the end then, and is told.
   * @throws NotFoundError · ExpiredError · LostError
   */
  async #stateToDrop(id: string, of: number, commands: ControlCommands, patience: Patience) {
    for (;;) {
      // A server that took over may have the state again.
      const { epoch } = this.#connection;
      const seen = await patience.call(() => commands.current());
      if (seen && seen.status !== 'void') {
        // cure: a drop removes no other life of the id
        if (seen.status !== 'dropped' && !isOfLife(of, seen)) throw new LostError(id);
        return seen;
      }
      const absence = await this.#absence(id, patience);
      if (seen) throw absence;
      const queue = this.#shards.of(id);
      // cure: a drop of what is gone is forgotten by the queue
      if (await patience.call(() => queue.finish(id, 0, 'dropped', 0, epoch))) throw absence;
    }
  }

  /** Resumes or updates a request, then pushes the tokens that this made possible. */
  async #change(
    id: string,
    seen: number,
    change: (commands: ControlCommands, generation: number) => Promise<ControlReply>,
  ): Promise<{ readonly wasPaused: boolean }> {
    const patience = await this.#reach(id);
    const commands = new ControlCommands(this.#connection, id);
    const changed = await this.#onCurrent(id, seen, patience, (current) =>
      change(commands, current),
    );
    const { reply, generation, queue, wasPaused } = changed;
    if (reply.verdict !== 'ok') throw new EndedError(id, reply.verdict);
    const { mint, epoch, priority, due } = reply;
    const at = { id, generation, queue, patience };
    if (mint > 0)
      await this.#notify(at, () => queue.push({ id, generation, mint, epoch, priority, due }));
    await this.#channelOf(queue).notifyWorkers('change', id, generation);
    // What earlier tends noted of the queue's lists may no longer be true.
    await this.#notify(at, () => queue.scheduleTend(id, generation, 0));
    return { wasPaused };
  }

  /** Calls the queue side, and opens the request there again if that side has lost it. */
  async #notify(
    { id, generation, queue, patience }: Target,
    call: () => Promise<QueueReply>,
  ): Promise<void> {
    const request = new ControlCommands(this.#connection, id);
    await reopenIfClosed(queue, request, generation, call, (one) => patience.call(one));
  }

  /**
   * Makes a change behind its announcement. A request that only waits, paused or parked, would be tended much later. A
   * repeated change is announced anew: Redis may have been away for longer than an announcement lasts.
   */
  async #announced<Reply>(
    { id, generation, queue }: Omit<Target, 'patience'>,
    change: () => Promise<Reply>,
  ): Promise<Reply> {
    const request = new ControlCommands(this.#connection, id);
    // cure: the agenda knows of a change before it is made
    await reopenIfClosed(queue, request, generation, () =>
      queue.scheduleTend(id, generation, 0, TIMES.slowMs),
    );
    return change();
  }

  /** Does `call` to the current generation. @throws NotFoundError · ExpiredError · DroppedError · LostError */
  async #onCurrent<Reply extends { readonly verdict: string }>(
    id: string,
    seen: number,
    patience: Patience,
    call: (generation: number) => Promise<Reply | { readonly verdict: 'gone' }>,
  ): Promise<{
    reply: Exclude<Reply, { verdict: 'gone' }>;
    generation: number;
    queue: QueueCommands;
    /** Before the call; a call whose reply was lost changes nothing of it. */
    wasPaused: boolean;
  }> {
    const commands = new ControlCommands(this.#connection, id);
    for (let i = 0; i < TRIES; i += 1) {
      const current = await patience.call(() => commands.current());
      if (!current || current.status === 'void') throw await this.#absence(id, patience);
      if (current.status === 'dropped') throw new DroppedError(id);
      // cure: another life of the id is not changed
      if (!isOfLife(seen, current)) throw new LostError(id);
      const { generation, paused: wasPaused } = current;
      const queue = this.#shards.named(current.queue);
      const reply = await patience.call(() =>
        this.#announced({ id, generation, queue }, () => call(generation)),
      );
      if (reply.verdict === 'gone') continue;
      return { reply: reply as Exclude<Reply, { verdict: 'gone' }>, generation, queue, wasPaused };
    }
    throw new NotFoundError(id);
  }

  async #absence(id: string, patience: Patience): Promise<Error> {
    const { endedAt } = await patience.call(() => this.#shards.whereabouts(id));
    return endedAt === undefined ? new NotFoundError(id) : new ExpiredError(id);
  }

  /** Checks the id, and that Redis can be reached. */
  async #reach(id: string): Promise<Patience> {
    checkOption('id', id, option.name());
    const patience = new Patience(this.#connection, id, { forMs: this.#forMs });
    await patience.reach();
    return patience;
  }

  #channelOf(queue: QueueCommands): QueueControlCommands {
    return new QueueControlCommands(this.#connection, queue.keys.queue);
  }
}

/** A generation of a request, and its queue side. */
interface Target {
  readonly id: string;
  readonly generation: number;
  readonly queue: QueueCommands;
  readonly patience: Patience;
}
