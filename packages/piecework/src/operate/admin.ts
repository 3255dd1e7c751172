import { type RequestStatus, statusOf } from '@piecework/notifier';
import { producerOptions } from '@piecework/producer';
import {
  Connection,
  checkOption,
  checkOptions,
  ERRORS_MAX,
  HISTORY_MS,
  type HistoryPoint,
  type OptionTable,
  option,
  Patience,
  QueueControlCommands,
  type QueueCounts,
  type QueueError,
  QueueErrors,
  type RedisInput,
  type RegisteredWorker,
  RequestReads,
  Shards,
  type SharedConnection,
  TIMES,
} from '@piecework/protocol';
import { type CheckedOptions, type DoctorOptions, doctorOptions } from './doctor/doctor-options.js';
import type { Finding } from './doctor/finding.js';
import {
  type ListOptions,
  listOptions,
  type PauseQueueOptions,
  pauseQueueOptions,
  type RunningOptions,
  runningOptions,
  type UpdateOptions,
} from './options.js';
import {
  type CheckedQueueEventsOptions,
  type QueueEvent,
  type QueueEventsOptions,
  queueEventsOptions,
} from './queue-events/queue-event.js';
import { queueEvents } from './queue-events/queue-events.js';
import { Redrive, type Redriven, type RedriveOptions, redriveOptions } from './redrive.js';
import { type Cancelled, type Changed, RequestControl } from './request-control.js';
import { listRequests } from './request-list.js';
import { type RunningSubRequest, runningOf } from './running.js';
import { unfinishedRequests } from './unfinished-scan.js';

export interface AdminOptions {
  /** Where Redis is, or a connection that is shared. A client that is passed in is never closed. */
  readonly redis: RedisInput | SharedConnection;
  /** Name of the queue. @default 'req' */
  readonly queue?: string | undefined;
  /**
   * How long each call keeps trying while Redis is unreachable, read-only, loading, or a hash slot is being
   * moved or served by no master, in ms, before it throws the last answer; 0: not at all. Calls fail at once when
   * Redis was never reached. @default 30000
   */
  readonly unavailableMs?: number | undefined;
  /** How many shards the queue has, from 1 to 64: the same for all that use it. @default 1 */
  readonly shards?: number | undefined;
}

export const adminOptions: OptionTable = {
  ...producerOptions,
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
};

export interface HistoryOptions {
  /** How far back, in ms, up to an hour. @default 3600000 */
  readonly sinceMs?: number | undefined;
}

export const historyOptions: OptionTable = { sinceMs: option.ms(0, HISTORY_MS, HISTORY_MS) };

/** What an operator reads of a queue and does to its requests, whichever process submitted them. */
export class Admin implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #queue: Shards;
  readonly #forMs: number;
  readonly #requests: RequestControl;
  readonly #closing = new AbortController();

  /** @throws InvalidOptionError */
  constructor(options: AdminOptions) {
    const checked = checkOptions<Required<AdminOptions>>(adminOptions, options);
    const { redis, queue, shards, unavailableMs } = checked;
    this.#forMs = unavailableMs;
    this.#connection = Connection.of(redis);
    this.#ownsConnection = this.#connection !== redis;
    this.#queue = new Shards(this.#connection, queue, shards);
    this.#requests = new RequestControl(this.#connection, this.#queue, unavailableMs);
  }

  /**
   * The requests of the queue: open ones in no order, then ended ones, the last first; each once. A
   * request that ends or is removed while the list is read may be left out.
   * @throws InvalidOptionError at once · ConnectionError, ServerError while iterating
   */
  list(options: ListOptions = {}): AsyncGenerator<RequestStatus> {
    const checked = checkOptions<Required<ListOptions>>(listOptions, options);
    return listRequests(this.#connection, this.#queue, checked, (read) => this.#read(read));
  }

  /**
   * What happens in the queue, from now on or behind the event of `cursor`: `completed` for each request that ends,
   * `attemptFailed`, and `progress`. Polls every `everyMs`; nothing is written to Redis for it. Has no end: leave the
   * loop, or abort `signal`.
   * @throws InvalidOptionError at once · while iterating AbortError, ClosedError · ConnectionError, ServerError when
   *   Redis was never reached, or refuses what it is asked
   */
  events(options: QueueEventsOptions = {}): AsyncGenerator<QueueEvent> {
    const checked = checkOptions<CheckedQueueEventsOptions>(queueEventsOptions, options);
    const sources = {
      connection: this.#connection,
      shards: this.#queue,
      patiently: <T>(read: () => Promise<T>) => this.#read(read),
      counts: () => this.counts(),
      errors: () => this.errors(),
      closing: this.#closing.signal,
    };
    return queueEvents(sources, checked);
  }

  /** The registered workers, in the order of their start. @throws ConnectionError, ServerError */
  workers(): Promise<RegisteredWorker[]> {
    return this.#read(() => this.#queue.workers());
  }

  /**
   * The sub-requests of a request that run now, the longest first: on which worker, for how long, and what the
   * handler reported last. At most `limit`, 100 by default. Empty for a complete request.
   * @param seen as of cancel
   * @throws NotFoundError · ExpiredError · LostError · DroppedError · InvalidOptionError · ConnectionError, ServerError
   */
  async running(id: string, options: RunningOptions = {}, seen = 0): Promise<RunningSubRequest[]> {
    checkOption('id', id, option.name());
    const checked = checkOptions<Required<RunningOptions>>(runningOptions, options);
    const found = await this.#read(() => runningOf(this.#connection, id, checked));
    const request = new RequestReads(this.#connection, id);
    // It is complete, or this throws what became of it.
    // cure: what runs of another life of the id is not shown
    if (found === 'gone' || seen > 0) await this.#read(() => statusOf(request, this.#queue, seen));
    return found === 'gone' ? [] : found;
  }

  /** How many requests the queue has open, and how many tokens wait. @throws ConnectionError, ServerError */
  counts(): Promise<QueueCounts> {
    return this.#read(() => this.#queue.counts());
  }

  /**
   * How the queue worked in the last hour, or `sinceMs`: a point for each ten seconds, the oldest first, also for those
   * without work. Workers report with each tick: every 1 to 5 s, in a fleet of more than 100 workers every 50 ms × their
   * number. So the last points still grow. It is an overview: what a worker did after its last report before it died
   * is not counted, and a server that loses its last writes may lose an interval.
   * @throws InvalidOptionError · ConnectionError, ServerError
   */
  async history(options: HistoryOptions = {}): Promise<HistoryPoint[]> {
    const { sinceMs } = checkOptions<Required<HistoryOptions>>(historyOptions, options);
    return this.#read(() => this.#queue.history(sinceMs));
  }

  /**
   * The last 100 failed attempts in this queue, the latest first. Sub-requests that failed because their workers
   * ended too often (CrashError) are among them. Workers report theirs once a second. The list is an overview:
   * all that failed for good is kept with its request (`failures`).
   * @throws ConnectionError, ServerError
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
   * Runs failed sub-requests of a complete request again, as a new generation of its id, and keeps the results of
   * the others. They count as ready again, with no attempts made; the request is complete again when they are
   * settled. If none matches, nothing happens. While Redis is away it keeps trying for `unavailableMs`. If it is
   * cut off half-way, what was moved runs and the rest stays failed: call it again when the request is complete.
   * @param seen as of cancel
   * @throws NotCompleteError: it still runs, or is redriven by somebody else · SealedError: it was ended
   *   meanwhile, as by its lease · NotFoundError · ExpiredError · LostError · DroppedError · InvalidOptionError ·
   *   ServerError, ConnectionError · IndeterminateError · what `where` throws
   */
  async redrive(id: string, options: RedriveOptions = {}, seen = 0): Promise<Redriven> {
    checkOption('id', id, option.name());
    const checked = checkOptions<RedriveOptions>(redriveOptions, options);
    await this.#patience(id).reach();
    return new Redrive(this.#connection, this.#queue, id, this.#forMs, seen).run(checked);
  }

  /**
   * Removes a request and everything of it, whatever its state; workers abort its running handlers. For five
   * minutes a tombstone lets waiting callers know of the drop (DroppedError). While Redis is away it keeps trying
   * for `unavailableMs`; calling again is safe. It removes the generation that exists at the first call: a request
   * that is submitted under the same id meanwhile stays.
   * @param seen as of cancel
   * @throws NotFoundError · ExpiredError · LostError · InvalidOptionError · ServerError, ConnectionError ·
   *   IndeterminateError
   */
  drop(id: string, seen = 0): Promise<void> {
    return this.#requests.drop(id, seen);
  }

  /**
   * Cancels a request. What does not run yet is cancelled at once; running handlers are aborted, and what
   * succeeds all the same counts. Results and failures stay. Calling again is safe.
   * @param seen a generation that the request has reached: if the id was used again since, nothing happens but a
   *   LostError; 0: whatever request has the id now. @default 0
   * @throws NotFoundError · ExpiredError · LostError · DroppedError · InvalidOptionError · ServerError,
   *   ConnectionError after `unavailableMs` · IndeterminateError
   */
  cancel(id: string, seen = 0): Promise<Cancelled> {
    return this.#requests.cancel(id, seen);
  }

  /**
   * Pauses a request: nothing of it starts until it is resumed; what runs may end. A worker that has read ahead learns
   * of the pause by a notice, usually within milliseconds, and at the latest with its next settle; until then it may
   * start some of that. The deadline of the request and its producer's lease keep running.
   * @param seen as of cancel
   * @returns whether that changed anything: false if it was paused already
   * @throws as cancel · EndedError when it is complete or being cancelled
   */
  pause(id: string, seen = 0): Promise<Changed> {
    return this.#requests.pause(id, seen);
  }

  /**
   * Resumes a paused request. It ends neither the pause of a queue nor a delay nor a hold: `status().why` says what a
   * request waits for.
   * @returns whether that changed anything: false if it was not paused · @throws as pause
   */
  resume(id: string, seen = 0): Promise<Changed> {
    return this.#requests.resume(id, seen);
  }

  /** Changes a request while it runs. What is left out stays as it is. @throws as pause */
  update(id: string, changes: UpdateOptions, seen = 0): Promise<void> {
    return this.#requests.update(id, changes, seen);
  }

  /**
   * Pauses the queue: its workers start nothing more and leave its requests as their handlers end. They are
   * notified at once; a worker that misses the notice learns of the pause with its next tick (seconds), and one
   * that starts later does before it takes anything. An earlier pause that lasts longer stays.
   * @returns when the pause ends, by the server's clock, in ms; 0: when it is resumed
   * @throws InvalidOptionError · ConnectionError, ServerError, IndeterminateError
   */
  async pauseQueue(options: PauseQueueOptions = {}): Promise<{ readonly pausedUntil: number }> {
    const { forMs } = checkOptions<Required<PauseQueueOptions>>(pauseQueueOptions, options);
    const ends = (await this.#ofAllShards((shard) => shard.pause(forMs))).map(({ until }) => until);
    return { pausedUntil: ends.includes(0) ? 0 : Math.max(...ends) };
  }

  /**
   * Ends the pause of the queue, whichever process began it.
   * @returns whether that changed anything: false if no shard was paused
   * @throws ConnectionError, ServerError, IndeterminateError
   */
  async resumeQueue(): Promise<Changed> {
    const paused = await this.#ofAllShards((shard) => shard.resume());
    return { changed: paused.includes(true) };
  }

  get #names(): string[] {
    return this.#queue.all.map(({ keys }) => keys.queue);
  }

  /**
   * A shard that cannot be reached does not keep the others from being called. Repeating a pause only makes it end
   * a little later.
   */
  async #ofAllShards<T>(call: (shard: QueueControlCommands) => Promise<T>): Promise<T[]> {
    await this.#patience(this.#queue.queue).reach();
    const settled = await Promise.allSettled(
      this.#names.map((name) => {
        const control = new QueueControlCommands(this.#connection, name);
        return this.#patience(name).call(() => call(control));
      }),
    );
    return settled.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
  }

  #patience(id: string): Patience {
    return new Patience(this.#connection, id, { forMs: this.#forMs });
  }

  #read<T>(read: () => Promise<T>): Promise<T> {
    return this.#patience('').read(read);
  }

  /**
   * Finds requests that have not ended and that the queue does not know, and opens them in the queue again. The
   * queue loses them when Redis loses writes of the queue alone, as in a failover of one master of a cluster, or
   * when somebody deletes its keys. Scans all keys of the database, some at a time.
   * @returns the ids that were lost · @throws ConnectionError, ServerError
   */
  async repair(): Promise<string[]> {
    // A cluster client knows its masters only when it is connected.
    await this.#patience(this.#queue.queue).reach();
    const lost: string[] = [];
    for await (const { id, generation, queue } of unfinishedRequests(
      this.#connection,
      this.#queue,
    )) {
      if (await this.#queue.named(queue).reopen(id, generation)) lost.push(id);
    }
    return lost;
  }

  /**
   * Checks the servers and the queue while they work: version, memory, persistence, replicas, cluster, clocks,
   * rights, workers, and every open request. Each finding says what to do.
   * @throws InvalidOptionError · ConnectionError when Redis cannot be reached · ServerError when it answers no
   *   question, as for a wrong password
   */
  async doctor(options: DoctorOptions = {}): Promise<Finding[]> {
    const checked = checkOptions<CheckedOptions>(doctorOptions, options);
    // Loaded on demand: most processes never need it.
    const { doctor } = await import('./doctor/doctor.js');
    return doctor(this.#connection, this.#queue, checked, () => this.repair());
  }

  /** Ends iterations of events, and closes the connection unless it was passed in. */
  async close(): Promise<void> {
    this.#closing.abort(this.#connection.owner ?? 'this admin');
    if (this.#ownsConnection) await this.#connection.closeSoon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
