import { type RequestStatus, statusOf } from '@piecework/notifier';
import { producerOptions } from '@piecework/producer';
import {
  Connection,
  checkOption,
  checkOptions,
  DroppedError,
  ExpiredError,
  NotFoundError,
  type OptionTable,
  option,
  Patience,
  QueueCommands,
  QueueControlCommands,
  type QueueCounts,
  type QueueError,
  QueueErrors,
  type RedisInput,
  type RegisteredWorker,
  RequestCommands,
  TIMES,
} from '@piecework/protocol';
import { livingRequests } from './living-requests.js';
import { Redrive, type Redriven, type RedriveOptions, redriveOptions } from './redrive.js';
import { type Cancelled, RequestControl, type UpdateOptions } from './request-control.js';

export interface AdminOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | Connection;
  /** @default 'req' */
  readonly queue?: string;
}

export interface ListOptions {
  /** 'open': not ended. 'ended': the last 1,000 of a week, as long as they are retained. @default 'open' */
  readonly state?: 'open' | 'ended' | 'all';
}

export interface PauseQueueOptions {
  /** After how long the queue goes on by itself, in ms, up to a year; 0: when it is resumed. @default 0 */
  readonly forMs?: number;
}

export const pauseQueueOptions: OptionTable = { forMs: option.ms(0, 31_536_000_000, 0) };

export const listOptions: OptionTable = { state: option.word('open', 'ended', 'all') };

/** How many requests are looked at in one round trip. */
const PAGE = 50;

/** What an operator sees of a queue and does to requests, whoever submitted them. */
export class Admin implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #queue: QueueCommands;

  /** @throws InvalidOptionError */
  constructor(options: AdminOptions) {
    const { redis, queue } = checkOptions<Required<AdminOptions>>(producerOptions, options);
    this.#ownsConnection = !(redis instanceof Connection);
    this.#connection = redis instanceof Connection ? redis : Connection.open(redis);
    this.#queue = new QueueCommands(this.#connection, queue);
  }

  /**
   * The requests of the queue: open ones in no order, then ended ones, the last first; each once. A
   * request that ends or goes while the list is read may be left out.
   * @throws InvalidOptionError · ConnectionError, ServerError when reading on
   */
  list(options: ListOptions = {}): AsyncGenerator<RequestStatus> {
    return this.#list(checkOptions<Required<ListOptions>>(listOptions, options).state);
  }

  async *#list(state: 'open' | 'ended' | 'all'): AsyncGenerator<RequestStatus> {
    // One may end, or begin its next life, while the list is read.
    const listed = new Set<string>();
    for await (const request of this.#read(state)) {
      if (listed.has(request.id)) continue;
      listed.add(request.id);
      yield request;
    }
  }

  async *#read(state: 'open' | 'ended' | 'all'): AsyncGenerator<RequestStatus> {
    if (state !== 'ended') {
      let page: string[] = [];
      for await (const id of this.#queue.openIds()) {
        page.push(id);
        if (page.length < PAGE) continue;
        yield* await this.#look(page);
        page = [];
      }
      yield* await this.#look(page);
    }
    if (state === 'open') return;
    for (let from = 0; ; from += PAGE) {
      const page = await this.#queue.endedIds(from, PAGE);
      if (page.length === 0) return;
      // One that was opened again, as a new life of its id, is among the open ones.
      yield* (await this.#look(page)).filter(({ status }) => status === 'complete');
    }
  }

  /** The requests of these ids that are still there. */
  async #look(ids: readonly string[]): Promise<RequestStatus[]> {
    const seen = await Promise.all(
      ids.map((id) =>
        statusOf(new RequestCommands(this.#connection, id), this.#queue).catch((error: unknown) => {
          const gone =
            error instanceof NotFoundError ||
            error instanceof ExpiredError ||
            error instanceof DroppedError;
          if (gone) return undefined;
          throw error;
        }),
      ),
    );
    return seen.filter((status) => status !== undefined);
  }

  /** The workers that are registered, in the order of their start. @throws ConnectionError, ServerError */
  workers(): Promise<RegisteredWorker[]> {
    return this.#queue.workers();
  }

  /** What the queue holds now. @throws ConnectionError, ServerError */
  counts(): Promise<QueueCounts> {
    return this.#queue.counts();
  }

  /**
   * The last 100 attempts that failed in this queue, the last one first; workers tell of them once a
   * second. A glance: what failed for good is kept with its request. @throws ConnectionError, ServerError
   */
  errors(): Promise<QueueError[]> {
    return new QueueErrors(this.#connection, this.#queue.keys.queue).last();
  }

  /**
   * Has failed sub-requests of a complete request run again, as a new life of its id, and keeps the
   * results of the others. They count as ready again, with no attempt behind them; the request is
   * complete again when they are settled, under a new generation. Without one that matches, nothing
   * happens. While Redis is away it goes on trying for 30 s. Cut off half-way, what was moved runs and
   * the rest stays failed: ask again when the request is complete.
   * @throws NotCompleteError: it still runs, or is redriven by somebody else · SealedError: it was ended
   *   meanwhile, as by its lease · NotFoundError · ExpiredError · DroppedError · InvalidOptionError ·
   *   ServerError, ConnectionError · IndeterminateError · what `where` throws
   */
  async redrive(id: string, options: RedriveOptions = {}): Promise<Redriven> {
    checkOption('id', id, option.name());
    const checked = checkOptions<RedriveOptions>(redriveOptions, options);
    return new Redrive(this.#connection, this.#queue, id).run(checked);
  }

  /**
   * Removes a request and everything of it, whatever its state; workers that run its sub-requests
   * abort them. A tombstone stays for five minutes, so that waiters learn what happened. While Redis
   * is away it goes on trying for 30 s; asking again is safe. What goes is the life that is there when it
   * is first asked: one that somebody begins under the same id meanwhile stays.
   * @throws NotFoundError · InvalidOptionError · ServerError, ConnectionError · IndeterminateError
   */
  async drop(id: string): Promise<void> {
    checkOption('id', id, option.name());
    const patience = new Patience(this.#connection, id, { forMs: TIMES.unavailableMs });
    const commands = new RequestCommands(this.#connection, id);
    const seen = await patience.call(() => commands.state());
    if (!seen || seen.status === 'void') throw new NotFoundError(id);
    const dropped = await patience.call(() => commands.drop(seen.generation));
    // Somebody, perhaps an earlier try of ours, dropped it, and its next life took the place of the tombstone.
    if (dropped.verdict === 'gone') return;
    // Repeating a drop whose second half was cut off takes it up where it was.
    const queue = new QueueCommands(this.#connection, dropped.queue);
    await patience.call(() => queue.finish(id, dropped.generation, 'dropped'));
    const control = new QueueControlCommands(this.#connection, dropped.queue);
    await control.tell('drop', id, dropped.generation);
  }

  /**
   * Cancels a request: what nobody runs at once, however much it is; running handlers are aborted, and
   * what succeeds all the same counts. Results and failures stay. Asking again is safe.
   * @throws NotFoundError · ExpiredError · DroppedError · InvalidOptionError · ServerError,
   *   ConnectionError after 30 s · IndeterminateError
   */
  async cancel(id: string): Promise<Cancelled> {
    return this.#control(id).cancel();
  }

  /**
   * Starts nothing of a request any more until it is resumed; what runs may end. Its deadline and its
   * producer's lease run on. @throws as cancel · EndedError when it is complete or being cancelled
   */
  async pause(id: string): Promise<void> {
    return this.#control(id).pause();
  }

  /** Lets a paused request go on; one that is not paused does anyway. @throws as pause */
  async resume(id: string): Promise<void> {
    return this.#control(id).resume();
  }

  /** Changes a request while it runs. What is left out stays. @throws as pause */
  async update(id: string, changes: UpdateOptions): Promise<void> {
    return this.#control(id).update(changes);
  }

  /**
   * Pauses the queue: its workers take nothing more and leave what they hold as their handlers end.
   * They are told at once; one that does not hear it learns it with its next tick (seconds), one that
   * starts later before it takes anything. A pause that ends later than this one stays.
   * @throws InvalidOptionError · ConnectionError, ServerError
   */
  async pauseQueue(options: PauseQueueOptions = {}): Promise<void> {
    const { forMs } = checkOptions<Required<PauseQueueOptions>>(pauseQueueOptions, options);
    await new QueueControlCommands(this.#connection, this.#queue.keys.queue).pause(forMs);
  }

  /** Ends the pause of the queue, whoever began it. @throws ConnectionError, ServerError */
  async resumeQueue(): Promise<void> {
    await new QueueControlCommands(this.#connection, this.#queue.keys.queue).resume();
  }

  #control(id: string): RequestControl {
    return new RequestControl(this.#connection, this.#queue, id);
  }

  /**
   * Finds requests that live and that the queue does not know, and has them looked at again. That
   * happens when Redis loses writes of the queue alone, as in a failover of one shard of a cluster, or
   * when somebody deletes its keys. Goes through all keys of the database, some at a time.
   * @returns the ids that were lost · @throws ConnectionError, ServerError
   */
  async repair(): Promise<string[]> {
    const lost: string[] = [];
    for await (const { id, generation } of livingRequests(
      this.#connection,
      this.#queue.keys.queue,
    )) {
      if (await this.#queue.reopen(id, generation)) lost.push(id);
    }
    return lost;
  }

  /** Closes the connection if it is ours. */
  async close(): Promise<void> {
    if (this.#ownsConnection) await this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
