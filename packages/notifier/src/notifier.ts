import {
  ClosedError,
  Connection,
  checkOption,
  checkOptions,
  FailureCommands,
  type Idle,
  type JsonText,
  type KeptFailure,
  LostError,
  NotFoundError,
  option,
  Patience,
  type PresentState,
  ReaderCommands,
  RequestReads,
  Shards,
  type WaitOptions,
  waitOptions,
} from '@piecework/protocol';
import {
  type CheckedEventsOptions,
  type RequestEventsOptions,
  requestEventsOptions,
} from './events/event-options.js';
import type { RequestEvent } from './events/request-event.js';
import { requestEvents } from './events/request-events.js';
import {
  type CheckedFailuresOptions,
  type FailureGroupsOptions,
  type FailuresOptions,
  failureGroupsOptions,
  failuresOptions,
} from './failures/failure-options.js';
import {
  expectKept,
  type Failure,
  type FailureGroup,
  failuresOf,
  groupsOf,
} from './failures/failures.js';
import { type NotifierOptions, notifierOptions } from './options.js';
import { type RequestDetails, requestDetails } from './progress/details.js';
import { type ProgressReport, progressOf } from './progress/progress.js';
import { type ProgressOptions, progressOptions } from './progress/progress-options.js';
import { QueueSigns } from './progress/standstill.js';
import { statusOf } from './progress/status.js';
import { OneByOne } from './results/one-by-one.js';
import type { ResultItem, SucceededItem } from './results/result-item.js';
import {
  type CheckedResultsOptions,
  type ResultsOptions,
  resultsOptions,
  type SuccessesOptions,
} from './results/result-options.js';
import { type Results, resultsOf } from './results/results.js';
import type { NamedChannel } from './waiting/caller-channel.js';
import { FirstReach } from './waiting/first-reach.js';
import { CompletionOutcome } from './waiting/outcome.js';
import { persist } from './waiting/persist.js';
import { readState } from './waiting/read-state.js';
import { WaitScope } from './waiting/wait-scope.js';
import { Waiters } from './waiting/waiters.js';

/**
 * Awaits requests and reads their results, from any process, before, during or after the completion. However many
 * requests are awaited at once, it has two connections: one for commands and one for notices (in a cluster: one
 * for notices to each master).
 *
 * Where a method takes a `generation`: one that the request is known to have reached, 0 for none. A request that no
 * longer has it is then a LostError, and not a success of the generation before. A `named` channel is what `name`
 * answered before this process submitted the request.
 */
export class Notifier implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #queue: Shards;
  readonly #signs: QueueSigns;
  readonly #firstReach: FirstReach;
  readonly #waiters: Waiters;
  readonly #forMs: number;
  readonly #closing = new AbortController();
  #closed = false;

  /** Connects at the first call. @throws InvalidOptionError */
  constructor(options: NotifierOptions) {
    const checked = checkOptions<
      NotifierOptions & { queue: string; shards: number; idle: Idle; unavailableMs: number }
    >(notifierOptions, options);
    const { redis, queue, shards, unavailableMs } = checked;
    this.#forMs = unavailableMs;
    this.#connection = Connection.of(redis);
    this.#ownsConnection = this.#connection !== redis;
    this.#queue = new Shards(this.#connection, queue, shards);
    this.#signs = new QueueSigns(this.#queue);
    this.#firstReach = new FirstReach(this.#connection);
    this.#waiters = new Waiters(this.#connection, this.#queue, this.#firstReach, checked);
  }

  /**
   * The channel of this process, for a submission that begins now: when the request ends, a message with its outcome,
   * and with its results if they are few, is published there.
   */
  name(): NamedChannel {
    return this.#waiters.name();
  }

  /**
   * Waits for the completion, or returns at once if the request is complete. A broken connection is no error: the
   * wait continues until Redis is back, for at most `timeoutMs` if that is given. Only a Redis that was never
   * reached fails the wait at once (ConnectionError). Of a redriven request the completion of its new generation
   * is awaited.
   * @throws InvalidOptionError, ClosedError · TimeoutError · AbortError · NotFoundError: no request
   *   of this id is known · ExpiredError: its retention has ended · DroppedError · LostError: it existed, and
   *   nothing shows that it ended · ConnectionError: this notifier never reached a Redis ·
   *   ServerError: the server cannot serve Piecework as it is
   */
  async completion(
    id: string,
    options: WaitOptions = {},
    generation = 0,
    named?: NamedChannel,
  ): Promise<CompletionOutcome> {
    this.#check(id);
    using scope = new WaitScope(
      `completion of ${id}`,
      checkOptions<WaitOptions>(waitOptions, options),
    );
    const subscription = this.#waiters.join(id, { seen: generation, named, awaits: true });
    scope.hindered = () => subscription.hindered;
    scope.why = () => this.#why(id, generation);
    try {
      return new CompletionOutcome(id, await scope.race(subscription.ended));
    } finally {
      subscription.leave();
    }
  }

  /**
   * The results, live while the request runs; ends when the request is complete and all results were yielded, however
   * the request ended: then `outcome` of the iterator says how. Sub-requests that failed, or were cancelled because the
   * request was cancelled or its deadline passed, have no result.
   * Another call with the `cursor` of an item continues behind that item: every other item comes exactly once.
   * A request with results 'discard' has only failures: without `failed` that is a ResultsDiscardedError.
   * `timeoutMs` counts from the first item asked for to the end. Every item has a `value`, unless `failed` asks
   * for failures too: then `status` distinguishes them.
   * @throws InvalidOptionError, ClosedError at once; while iterating as completion, and ServerError
   */
  results<Result = unknown>(
    id: string,
    options: ResultsOptions & { readonly jsonText: true },
    generation?: number,
    named?: NamedChannel,
  ): Results<ResultItem<JsonText<Result>>>;
  results<Result = unknown>(
    id: string,
    options?: SuccessesOptions,
    generation?: number,
    named?: NamedChannel,
  ): Results<SucceededItem<Result>>;
  results<Result = unknown>(
    id: string,
    options: ResultsOptions,
    generation?: number,
    named?: NamedChannel,
  ): Results<ResultItem<Result>>;
  results<Result = unknown>(
    id: string,
    options: ResultsOptions = {},
    generation = 0,
    named?: NamedChannel,
  ): Results<ResultItem<Result | JsonText<Result>>> {
    this.#check(id);
    const checked = checkOptions<CheckedResultsOptions>(resultsOptions, options);
    return resultsOf<Result | JsonText<Result>>(
      new ReaderCommands(this.#connection, id),
      (afresh) => this.#join(id, generation, named, afresh),
      checked,
      this.#closing.signal,
      () => this.#why(id, generation),
      () => this.#waiters.endWithResults(id, { seen: generation, named }),
    );
  }

  /** Counts, rate and time left, every `everyMs` and at completion. @throws as results */
  progress(
    id: string,
    options: ProgressOptions = {},
    generation = 0,
  ): AsyncGenerator<ProgressReport> {
    this.#check(id);
    const checked = checkOptions<ProgressOptions & { everyMs: number }>(progressOptions, options);
    const join = () => this.#join(id, generation);
    const why = () => this.#why(id, generation);
    return progressOf(this.#request(id), this.#queue, join, checked, this.#closing.signal, why);
  }

  /**
   * What happens to the request, until it is complete: each outcome once, progress every `progressMs`, and the
   * completion. Another call with the `cursor` of an event continues behind it, also after a redrive.
   * @throws as results
   */
  events<Result = unknown>(
    id: string,
    options: RequestEventsOptions = {},
    generation = 0,
    named?: NamedChannel,
  ): AsyncGenerator<RequestEvent<Result>> {
    this.#check(id);
    const checked = checkOptions<CheckedEventsOptions>(requestEventsOptions, options);
    const sources = {
      request: new ReaderCommands(this.#connection, id),
      join: () => this.#join(id, generation, named),
      progress: (everyMs: number, signal: AbortSignal) =>
        this.progress(id, { everyMs, signal }, generation),
      why: () => this.#why(id, generation),
    };
    return requestEvents<Result>(sources, checked, this.#closing.signal);
  }

  /**
   * The sub-requests that have failed by now, in the order of the items, each with its payload and its error.
   * Another call with the `cursor` of a failure continues behind it.
   * @throws InvalidOptionError, ClosedError at once; while iterating as results
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
    using scope = new WaitScope(`failures of ${id}`, options, this.#closing.signal);
    let life = await this.#found(id, scope, generation);
    const areOurs = (failures: readonly KeptFailure[]) =>
      failures.every((one) => life.first <= one.generation && one.generation <= life.generation);
    const commands = new FailureCommands(this.#connection, id);
    yield* failuresOf(commands, scope, options, async (failures) => {
      if (areOurs(failures)) return;
      // Unless it was redriven, and they failed again, they are of another request, and this throws.
      life = await this.#found(id, scope, life.generation);
      if (!areOurs(failures)) throw new LostError(id);
    });
    // The list is only known to be whole if the request still exists.
    await this.#found(id, scope, life.generation);
    await expectKept(commands, scope, id);
  }

  /**
   * The failed sub-requests by kind: name of the error and message, except for numbers, paths, names with dots and
   * quoted words in it. The most frequent first, with an example of each. @throws as failures
   */
  async failureGroups(
    id: string,
    options: FailureGroupsOptions = {},
    generation = 0,
  ): Promise<FailureGroup[]> {
    this.#check(id);
    const checked = checkOptions<FailureGroupsOptions & { jsonText: boolean }>(
      failureGroupsOptions,
      options,
    );
    using scope = new WaitScope(`failures of ${id}`, checked, this.#closing.signal);
    const seen = await this.#found(id, scope, generation);
    const commands = new FailureCommands(this.#connection, id);
    const groups = await groupsOf(commands, scope, checked.jsonText);
    await this.#found(id, scope, seen.generation);
    await expectKept(commands, scope, id);
    return groups;
  }

  /** Its generations. @throws NotFoundError · ExpiredError · LostError · DroppedError */
  async #found(id: string, scope: WaitScope, seen: number): Promise<PresentState> {
    const refusal = await scope.race(this.#firstReach.refusal());
    if (refusal !== undefined) throw refusal;
    const read = await persist(scope, () => readState(this.#request(id), this.#queue, seen));
    if (read.kind === 'absent') throw read.error;
    if (read.kind === 'creating') throw new NotFoundError(id);
    return read.state;
  }

  /**
   * Everything known about a request now. While Redis is away it keeps trying for `unavailableMs`.
   * @throws InvalidOptionError, ClosedError · NotFoundError · ExpiredError · LostError · DroppedError ·
   *   ConnectionError, ServerError after `unavailableMs`
   */
  async status(id: string, generation = 0): Promise<RequestDetails> {
    this.#check(id);
    const patience = new Patience(this.#connection, id, {
      forMs: this.#forMs,
      signals: [this.#closing.signal],
    });
    return patience.read(() =>
      requestDetails(this.#request(id), this.#queue, generation, this.#signs),
    );
  }

  /** Ends every wait with ClosedError, and closes the connection unless it was passed in. May be called twice. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.abort(this.#called);
    const stopped = this.#waiters.close(new ClosedError(this.#called));
    if (this.#ownsConnection) await this.#connection.closeSoon(stopped);
    else await stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #check(id: string): void {
    if (this.#closed) throw new ClosedError(this.#called);
    checkOption('id', id, option.name());
  }

  /** For iterators: the first item may be asked for after the close. @throws ClosedError */
  #join(id: string, generation: number, named?: NamedChannel, afresh = false) {
    if (this.#closed) throw new ClosedError(this.#called);
    return this.#waiters.join(id, { seen: generation, named, afresh });
  }

  /** What its user has closed. */
  get #called(): string {
    return this.#connection.owner ?? 'this notifier';
  }

  /** Why the request is not further, for a caller whose time is up. */
  async #why(id: string, generation: number): Promise<string> {
    const status = await statusOf(this.#request(id), this.#queue, generation, this.#signs);
    return status.why;
  }

  #request(id: string): RequestReads {
    return new RequestReads(this.#connection, id);
  }
}
