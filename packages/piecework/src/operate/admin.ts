import { type RequestStatus, statusOf } from '@piecework/notifier';
import { producerOptions } from '@piecework/producer';
import {
  Connection,
  checkOption,
  checkOptions,
  DroppedError,
  ERRORS_MAX,
  ExpiredError,
  NotFoundError,
  type OptionTable,
  option,
  Patience,
  QueueControlCommands,
  type QueueCounts,
  type QueueError,
  QueueErrors,
  type RedisInput,
  type RegisteredWorker,
  RequestCommands,
  Shards,
  TIMES,
} from '@piecework/protocol';
import type { CheckedOptions, DoctorOptions } from './doctor/doctor.js';
import type { Finding } from './doctor/finding.js';
import { Redrive, type Redriven, type RedriveOptions, redriveOptions } from './redrive.js';
import { type Cancelled, RequestControl, type UpdateOptions } from './request-control.js';
import {
  type RunningOptions,
  type RunningSubRequest,
  runningOf,
  runningOptions,
} from './running.js';
import { livingRequests } from './unfinished-scan.js';

export interface AdminOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | Connection;
  /** @default 'req' */
  readonly queue?: string | undefined;
  /**
   * How long each call goes on trying while Redis is unreachable, read-only, loading, or a hash slot is on
   * its way or served by nobody, in ms, before it throws what it was answered last; 0: not at all. A Redis
   * that was never reached is told at once. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /** How many shards the queue has, from 1 to 64: the same for all who use it. @default 1 */
  readonly shards?: number | undefined;
}

export const adminOptions: OptionTable = {
  ...producerOptions,
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
};

export interface ListOptions {
  /** 'open': not ended. 'ended': the last 1,000 of a week, as long as they are retained. @default 'open' */
  readonly state?: 'open' | 'ended' | 'all' | undefined;
}

export interface PauseQueueOptions {
  /** After how long the queue goes on by itself, in ms, up to a year; 0: when it is resumed. @default 0 */
  readonly forMs?: number | undefined;
}

export const pauseQueueOptions: OptionTable = { forMs: option.ms(0, 31_536_000_000, 0) };

export const listOptions: OptionTable = { state: option.word('open', 'ended', 'all') };

/** How many requests are looked at in one round trip. */
const PAGE = 50;

/** What an operator sees of a queue and does to requests, whoever submitted them. */
export class Admin implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #queue: Shards;
  readonly #forMs: number;

  /** @throws InvalidOptionError */
  constructor(options: AdminOptions) {
    const checked = checkOptions<Required<AdminOptions>>(adminOptions, options);
    const { redis, queue, shards, unavailableMs } = checked;
    this.#forMs = unavailableMs;
    this.#ownsConnection = !(redis instanceof Connection);
    this.#connection = redis instanceof Connection ? redis : Connection.open(redis);
    this.#queue = new Shards(this.#connection, queue, shards);
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
    for await (const request of this.#listed(state)) {
      if (listed.has(request.id)) continue;
      listed.add(request.id);
      yield request;
    }
  }

  async *#listed(state: 'open' | 'ended' | 'all'): AsyncGenerator<RequestStatus> {
    if (state !== 'ended') {
      const ids = this.#queue.openIds((read) => this.#read(read));
      for await (const page of pagesOf(ids)) yield* await this.#look(page);
    }
    if (state === 'open') return;
    for await (const page of pagesOf(this.#queue.endedIds((read) => this.#read(read)))) {
      // One that was opened again, as a new life of its id, is among the open ones.
      yield* (await this.#look(page)).filter(({ status }) => status === 'complete');
    }
  }

  /** The requests of these ids that are still there. */
  async #look(ids: readonly string[]): Promise<RequestStatus[]> {
    const seen = await Promise.all(
      ids.map((id) =>
        this.#read(() => statusOf(new RequestCommands(this.#connection, id), this.#queue)).catch(
          (error: unknown) => {
            const gone =
              error instanceof NotFoundError ||
              error instanceof ExpiredError ||
              error instanceof DroppedError;
            if (gone) return undefined;
            throw error;
          },
        ),
      ),
    );
    return seen.filter((status) => status !== undefined);
  }

  /** The workers that are registered, in the order of their start. @throws ConnectionError, ServerError */
  workers(): Promise<RegisteredWorker[]> {
    return this.#read(() => this.#queue.workers());
  }

  /**
   * What runs of a request, the longest first: on which worker, for how long, with what its handler reported last.
   * `limit` of them at most, 100 by default. Of a complete request nothing runs.
   * @throws NotFoundError · ExpiredError · DroppedError · InvalidOptionError · ConnectionError, ServerError
   */
  async running(id: string, options: RunningOptions = {}): Promise<RunningSubRequest[]> {
    checkOption('id', id, option.name());
    const checked = checkOptions<Required<RunningOptions>>(runningOptions, options);
    const found = await this.#read(() => runningOf(this.#connection, id, checked));
    if (found !== 'gone') return found;
    // Complete, or the error says what became of it.
    await this.#read(() => statusOf(new RequestCommands(this.#connection, id), this.#queue));
    return [];
  }

  /** What the queue holds now. @throws ConnectionError, ServerError */
  counts(): Promise<QueueCounts> {
    return this.#read(() => this.#queue.counts());
  }

  /**
   * The last 100 attempts that failed in this queue, the last one first, also sub-requests that failed because their
   * workers ended too often (CrashError); workers tell of theirs once a second. A glance: what failed for good is kept with its request. @throws ConnectionError, ServerError
   */
  async errors(): Promise<QueueError[]> {
    const lists = await this.#read(() =>
      Promise.all(this.#names.map((name) => new QueueErrors(this.#connection, name).last())),
    );
    const [first = []] = lists;
    if (lists.length === 1) return first;
    return lists
      .flat()
      .sort((a, b) => b.at - a.at)
      .slice(0, ERRORS_MAX);
  }

  /**
   * Has failed sub-requests of a complete request run again, as a new life of its id, and keeps the
   * results of the others. They count as ready again, with no attempt behind them; the request is
   * complete again when they are settled, under a new generation. Without one that matches, nothing
   * happens. While Redis is away it goes on trying for `unavailableMs`. Cut off half-way, what was moved runs and
   * the rest stays failed: ask again when the request is complete.
   * @throws NotCompleteError: it still runs, or is redriven by somebody else · SealedError: it was ended
   *   meanwhile, as by its lease · NotFoundError · ExpiredError · DroppedError · InvalidOptionError ·
   *   ServerError, ConnectionError · IndeterminateError · what `where` throws
   */
  async redrive(id: string, options: RedriveOptions = {}): Promise<Redriven> {
    checkOption('id', id, option.name());
    const checked = checkOptions<RedriveOptions>(redriveOptions, options);
    await this.#patience(id).reach();
    return new Redrive(this.#connection, this.#queue, id, this.#forMs).run(checked);
  }

  /**
   * Removes a request and everything of it, whatever its state; workers that run its sub-requests
   * abort them. A tombstone stays for five minutes, so that waiters learn what happened. While Redis
   * is away it goes on trying for `unavailableMs`; asking again is safe. What goes is the life that is there when it
   * is first asked: one that somebody begins under the same id meanwhile stays.
   * @throws NotFoundError · InvalidOptionError · ServerError, ConnectionError · IndeterminateError
   */
  async drop(id: string): Promise<void> {
    checkOption('id', id, option.name());
    const patience = this.#patience(id);
    await patience.reach();
    const commands = new RequestCommands(this.#connection, id);
    const seen = await patience.call(() => commands.state());
    if (!seen || seen.status === 'void') throw new NotFoundError(id);
    for (let { generation } = seen, told = false; !told; ) {
      // A server that took over may not have dropped it; whoever comes again finds it dropped, or gone.
      const { epoch } = this.#connection;
      const dropped = await patience.call(() => commands.drop(generation));
      // Somebody, perhaps an earlier try of ours, dropped it, and its next life took the place of the tombstone.
      if (dropped.verdict === 'gone') return;
      generation = dropped.generation;
      // Repeating a drop whose second half was cut off takes it up where it was.
      const queue = this.#queue.named(dropped.queue);
      told = await patience.call(() => queue.finish(id, generation, 'dropped', 0, epoch));
      const control = new QueueControlCommands(this.#connection, dropped.queue);
      if (told) await control.tell('drop', id, generation);
    }
  }

  /**
   * Cancels a request: what nobody runs at once, however much it is; running handlers are aborted, and
   * what succeeds all the same counts. Results and failures stay. Asking again is safe.
   * @throws NotFoundError · ExpiredError · DroppedError · InvalidOptionError · ServerError,
   *   ConnectionError after `unavailableMs` · IndeterminateError
   */
  async cancel(id: string): Promise<Cancelled> {
    return (await this.#control(id)).cancel();
  }

  /**
   * Starts nothing of a request any more until it is resumed; what runs may end. Its deadline and its
   * producer's lease run on. @throws as cancel · EndedError when it is complete or being cancelled
   */
  async pause(id: string): Promise<void> {
    return (await this.#control(id)).pause();
  }

  /** Lets a paused request go on; one that is not paused does anyway. @throws as pause */
  async resume(id: string): Promise<void> {
    return (await this.#control(id)).resume();
  }

  /** Changes a request while it runs. What is left out stays. @throws as pause */
  async update(id: string, changes: UpdateOptions): Promise<void> {
    return (await this.#control(id)).update(changes);
  }

  /**
   * Pauses the queue: its workers take nothing more and leave what they hold as their handlers end.
   * They are told at once; one that does not hear it learns it with its next tick (seconds), one that
   * starts later before it takes anything. A pause that ends later than this one stays.
   * @throws InvalidOptionError · ConnectionError, ServerError, IndeterminateError
   */
  async pauseQueue(options: PauseQueueOptions = {}): Promise<void> {
    const { forMs } = checkOptions<Required<PauseQueueOptions>>(pauseQueueOptions, options);
    await this.#ofAllShards((shard) => shard.pause(forMs));
  }

  /** Ends the pause of the queue, whoever began it. @throws ConnectionError, ServerError, IndeterminateError */
  async resumeQueue(): Promise<void> {
    await this.#ofAllShards((shard) => shard.resume());
  }

  get #names(): string[] {
    return this.#queue.all.map(({ keys }) => keys.queue);
  }

  /**
   * One that cannot be reached keeps nobody from telling the others. Repeated, a pause ends a little later,
   * and all else is as it was.
   */
  async #ofAllShards(tell: (shard: QueueControlCommands) => Promise<unknown>): Promise<void> {
    await this.#patience(this.#queue.queue).reach();
    const told = await Promise.allSettled(
      this.#names.map((name) => {
        const control = new QueueControlCommands(this.#connection, name);
        return this.#patience(name).call(() => tell(control));
      }),
    );
    for (const one of told) if (one.status === 'rejected') throw one.reason;
  }

  #patience(id: string): Patience {
    return new Patience(this.#connection, id, { forMs: this.#forMs });
  }

  #read<T>(read: () => Promise<T>): Promise<T> {
    return this.#patience('').read(read);
  }

  async #control(id: string): Promise<RequestControl> {
    const control = new RequestControl(this.#connection, this.#queue, id, this.#forMs);
    await this.#patience(id).reach();
    return control;
  }

  /**
   * Finds requests that live and that the queue does not know, and has them looked at again. That
   * happens when Redis loses writes of the queue alone, as in a failover of one shard of a cluster, or
   * when somebody deletes its keys. Goes through all keys of the database, some at a time.
   * @returns the ids that were lost · @throws ConnectionError, ServerError
   */
  async repair(): Promise<string[]> {
    // Which masters there are, a cluster client knows when it is connected.
    await this.#patience(this.#queue.queue).reach();
    const lost: string[] = [];
    for await (const { id, generation, queue } of livingRequests(this.#connection, this.#queue)) {
      if (await this.#queue.named(queue).reopen(id, generation)) lost.push(id);
    }
    return lost;
  }

  /**
   * Looks at the servers and at the queue while they work: version, memory, persistence, replicas, cluster,
   * clocks, rights, workers, and every open request. Each finding says what to do.
   * @throws InvalidOptionError · ConnectionError when Redis cannot be reached
   */
  async doctor(options: DoctorOptions = {}): Promise<Finding[]> {
    // Loaded when it is asked for: most processes never do.
    const { doctor, doctorOptions } = await import('./doctor/doctor.js');
    const checked = checkOptions<CheckedOptions>(doctorOptions, options);
    return doctor(this.#connection, this.#queue, checked, () => this.repair());
  }

  /** Closes the connection if it is ours. */
  async close(): Promise<void> {
    if (this.#ownsConnection) await this.#connection.closeSoon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function* pagesOf(ids: AsyncIterable<string>): AsyncGenerator<string[]> {
  let page: string[] = [];
  for await (const id of ids) {
    page.push(id);
    if (page.length < PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
