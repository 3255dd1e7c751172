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
  type QueueCounts,
  type RedisInput,
  type RegisteredWorker,
  RequestCommands,
  TIMES,
} from '@piecework/protocol';
import { livingRequests } from './living-requests.js';

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
