import {
  ClosedError,
  Connection,
  checkOption,
  checkOptions,
  FailureCommands,
  NotFoundError,
  option,
  Patience,
  RequestCommands,
  Shards,
  type WaitOptions,
  waitOptions,
} from '@piecework/protocol';
import {
  type CheckedFailuresOptions,
  type FailuresOptions,
  failuresOptions,
} from './failure-options.js';
import { type Failure, type FailureGroup, failuresOf, groupsOf } from './failures.js';
import { FirstReach } from './first-reach.js';
import { look } from './look.js';
import { OneByOne } from './one-by-one.js';
import {
  type CheckedResultsOptions,
  type NotifierOptions,
  notifierOptions,
  type ProgressOptions,
  progressOptions,
  type ResultsOptions,
  resultsOptions,
  type SuccessesOptions,
} from './options.js';
import { CompletionOutcome } from './outcome.js';
import { persist } from './persist.js';
import { type ProgressReport, progressOf } from './progress.js';
import type { ResultItem, SucceededItem } from './result-item.js';
import { resultsOf } from './results.js';
import { type RequestStatus, statusOf } from './status.js';
import { Stay } from './stay.js';
import { Waiters } from './waiters.js';

/**
 * Awaits requests and reads their results, from any process, before, during or after the completion.
 * However many are awaited at once, it has two connections: one for commands, one that listens (in
 * a cluster: one that listens to each master).
 */
export class Notifier implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #queue: Shards;
  readonly #firstReach: FirstReach;
  readonly #waiters: Waiters;
  readonly #forMs: number;
  readonly #closing = new AbortController();
  #closed = false;

  /** @throws InvalidOptionError. Connects at the first call. */
  constructor(options: NotifierOptions) {
    const checked = checkOptions<
      NotifierOptions & { queue: string; shards: number; sweepMs: number; unavailableMs: number }
    >(notifierOptions, options);
    const { redis, queue, shards, unavailableMs } = checked;
    this.#forMs = unavailableMs;
    this.#ownsConnection = !(redis instanceof Connection);
    this.#connection = redis instanceof Connection ? redis : Connection.open(redis);
    this.#queue = new Shards(this.#connection, queue, shards);
    this.#firstReach = new FirstReach(this.#connection);
    this.#waiters = new Waiters(this.#connection, this.#queue, this.#firstReach, checked);
  }

  /**
   * Waits for the completion; it may have been long ago. A connection that breaks is waited for and
   * never an error, without end unless `timeoutMs` sets one; only a Redis that was never reached is told at once
   * (ConnectionError). Of a redriven request the completion of its new life is awaited. Who knows a
   * `generation` of the request (0: none) need not read its state to believe the notice of its end.
   * @throws InvalidOptionError, ClosedError · TimeoutError · AbortError · NotFoundError: no request
   *   of this id is known · ExpiredError: its retention is over · DroppedError · LostError: it was there,
   *   and nothing says that it ended · ConnectionError: there is no Redis, and never was for this notifier ·
   *   ServerError: it cannot serve Piecework as it is
   */
  async completion(
    id: string,
    options: WaitOptions = {},
    generation = 0,
  ): Promise<CompletionOutcome> {
    this.#check(id);
    using stay = new Stay(`completion of ${id}`, checkOptions<WaitOptions>(waitOptions, options));
    const ticket = this.#waiters.join(id, generation);
    stay.hindered = () => ticket.hindered;
    try {
      return new CompletionOutcome(id, await stay.race(ticket.ended));
    } finally {
      ticket.leave();
    }
  }

  /**
   * The results, live while the request runs; ends when it is complete and all were given out. Each
   * item has a `cursor`, with which another call goes on behind it: every other item comes exactly
   * once. Of a request with results 'discard' there are only failures: without `failed` that is a
   * ResultsDiscardedError. `timeoutMs` counts from the
   * first item asked for to the end. Every item has a `value`, unless `failed` asks for failures too:
   * then `status` tells them apart.
   * @throws InvalidOptionError, ClosedError at once; the rest as completion, and ServerError, when
   *   reading on
   */
  results<Result = unknown>(
    id: string,
    options?: SuccessesOptions,
    generation?: number,
  ): AsyncGenerator<SucceededItem<Result>>;
  results<Result = unknown>(
    id: string,
    options: ResultsOptions,
    generation?: number,
  ): AsyncGenerator<ResultItem<Result>>;
  results<Result = unknown>(
    id: string,
    options: ResultsOptions = {},
    generation = 0,
  ): AsyncGenerator<ResultItem<Result>> {
    this.#check(id);
    const checked = checkOptions<CheckedResultsOptions>(resultsOptions, options);
    return resultsOf<Result>(
      this.#request(id),
      () => this.#join(id, generation),
      checked,
      this.#closing.signal,
    );
  }

  /**
   * Counts, rate and time left, every `everyMs` and at completion. Errors as `results`.
   */
  progress(
    id: string,
    options: ProgressOptions = {},
    generation = 0,
  ): AsyncGenerator<ProgressReport> {
    this.#check(id);
    const checked = checkOptions<ProgressOptions & { everyMs: number }>(progressOptions, options);
    const join = () => this.#join(id, generation);
    return progressOf(this.#request(id), join, checked, this.#closing.signal);
  }

  /**
   * The failed sub-requests that there are now, in the order of the items, each with its payload and
   * its error. Each has a `cursor`, with which another call goes on behind it.
   * @throws InvalidOptionError, ClosedError at once; the rest as results, when reading on
   */
  failures(id: string, options: FailuresOptions = {}, generation = 0): AsyncGenerator<Failure> {
    this.#check(id);
    const checked = checkOptions<CheckedFailuresOptions>(failuresOptions, options);
    return new OneByOne(this.#failures(id, checked, generation));
  }

  async *#failures(
    id: string,
    options: CheckedFailuresOptions,
    generation: number,
  ): AsyncGenerator<Failure[]> {
    using stay = new Stay(`failures of ${id}`, options, this.#closing.signal);
    const seen = await this.#found(id, stay, generation);
    yield* failuresOf(new FailureCommands(this.#connection, id), stay, options);
    // That nothing more failed is only known of a request that is still there.
    await this.#found(id, stay, seen);
  }

  /**
   * The failed sub-requests by the name of their errors, the most frequent first, with an example of
   * each. @throws as failures
   */
  async failureGroups(
    id: string,
    options: WaitOptions = {},
    generation = 0,
  ): Promise<FailureGroup[]> {
    this.#check(id);
    const checked = checkOptions<WaitOptions>(waitOptions, options);
    using stay = new Stay(`failures of ${id}`, checked, this.#closing.signal);
    const seen = await this.#found(id, stay, generation);
    const groups = await groupsOf(new FailureCommands(this.#connection, id), stay);
    await this.#found(id, stay, seen);
    return groups;
  }

  /** The life that is there. @throws NotFoundError · ExpiredError · LostError · DroppedError */
  async #found(id: string, stay: Stay, seen: number): Promise<number> {
    const refusal = await stay.race(this.#firstReach.refusal());
    if (refusal !== undefined) throw refusal;
    const looked = await persist(stay, () => look(this.#request(id), this.#queue, seen));
    if (looked.kind === 'absent') throw looked.error;
    if (looked.kind === 'creating') throw new NotFoundError(id);
    return looked.state.generation;
  }

  /**
   * Everything known about a request now.
   * @throws InvalidOptionError, ClosedError · NotFoundError · ExpiredError · LostError · DroppedError ·
   *   ConnectionError, ServerError after `unavailableMs`
   */
  async status(id: string, generation = 0): Promise<RequestStatus> {
    this.#check(id);
    const patience = new Patience(this.#connection, id, {
      forMs: this.#forMs,
      signals: [this.#closing.signal],
    });
    return patience.read(() => statusOf(this.#request(id), this.#queue, generation));
  }

  /** Ends every wait with ClosedError, and closes the connection if it is ours. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.abort();
    const stopped = this.#waiters.close(new ClosedError('notifier'));
    if (this.#ownsConnection) await this.#connection.closeSoon(stopped);
    else await stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #check(id: string): void {
    if (this.#closed) throw new ClosedError('notifier');
    checkOption('id', id, option.name());
  }

  /** For readers, which may begin after the close. */
  #join(id: string, generation: number) {
    if (this.#closed) throw new ClosedError('notifier');
    return this.#waiters.join(id, generation);
  }

  #request(id: string): RequestCommands {
    return new RequestCommands(this.#connection, id);
  }
}
