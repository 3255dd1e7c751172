import {
  Agenda,
  ClosedError,
  Connection,
  checkOption,
  checkOptions,
  ExpiredError,
  InvalidOptionError,
  option,
  QueueCommands,
  RequestCommands,
  type WaitOptions,
  waitFor,
  waitOptions,
} from '@piecework/protocol';
import { inCompletionOrder } from './completion-order.js';
import { inIndexOrder } from './index-order.js';
import {
  type NotifierOptions,
  notifierOptions,
  type ProgressOptions,
  progressOptions,
  type ResultsOptions,
  resultsOptions,
} from './options.js';
import { CompletionOutcome } from './outcome.js';
import { type ProgressReport, progressReports } from './progress.js';
import type { ResultItem } from './result-feed.js';
import { type RequestStatus, readStatus } from './status.js';
import { Waiters } from './waiters.js';

/**
 * Awaits completions and reads results, in any process, however many at once over a constant number
 * of connections. While somebody waits it also looks at the agenda, so that what has to happen to a
 * request happens with no worker alive.
 */
export class Notifier implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  readonly #queue: QueueCommands;
  readonly #agenda: Agenda;
  readonly #waiters: Waiters;
  #closed = false;

  /** @throws InvalidOptionError */
  constructor(options: NotifierOptions) {
    const { redis, queue, sweepMs } = checkOptions<Required<NotifierOptions>>(
      notifierOptions,
      options,
    );
    this.#ownsConnection = !(redis instanceof Connection);
    this.#connection = redis instanceof Connection ? redis : Connection.open(redis);
    this.#queue = new QueueCommands(this.#connection, queue);
    this.#agenda = new Agenda(this.#connection, this.#queue);
    const onBusy = (busy: boolean) => (busy ? this.#agenda.start() : void this.#agenda.stop());
    this.#waiters = new Waiters(this.#connection, this.#queue, { sweepMs, onBusy });
  }

  /**
   * Waits for the completion of a request; it may have been long ago.
   * @throws TimeoutError · AbortError · NotFoundError · ExpiredError · DroppedError
   */
  async completion(id: string, options: WaitOptions = {}): Promise<CompletionOutcome> {
    this.#check(id);
    const checked = checkOptions<WaitOptions>(waitOptions, options);
    const what = `completion of ${id}`;
    const state = await waitFor(what, checked, (signal) => this.#waiters.wait(id, signal));
    return new CompletionOutcome(id, state);
  }

  /**
   * Results of a request, live while it runs; ends when it is complete and all were given out.
   * Memory stays bounded: 8 bytes for each result that waits for its turn in index order, and
   * `bufferBytes`.
   * @throws as completion
   */
  async *results<Result = unknown>(
    id: string,
    options: ResultsOptions = {},
  ): AsyncGenerator<ResultItem<Result>> {
    this.#check(id);
    const { order, failed, cursor, bufferBytes, ...wait } = checkOptions<
      Required<Pick<ResultsOptions, 'order' | 'failed' | 'bufferBytes'>> & ResultsOptions
    >(resultsOptions, options);
    if (cursor !== undefined && cursor.startsWith('i') !== (order === 'index')) {
      throw new InvalidOptionError('cursor', cursor, `a cursor of ${order} order`);
    }
    const commands = new RequestCommands(this.#connection, id);
    yield* this.#untilComplete(id, wait, async function* (done) {
      yield* order === 'index'
        ? inIndexOrder<Result>(commands, { failed, cursor, bufferBytes }, done)
        : inCompletionOrder<Result>(commands, { failed, cursor }, done);
      // What expired while it was read must not look like an end.
      if (!(await commands.state())) throw new ExpiredError(id);
    });
  }

  /** Reports how far a request is, and ends with its completion. @throws as completion */
  async *progress(id: string, options: ProgressOptions = {}): AsyncGenerator<ProgressReport> {
    this.#check(id);
    const { everyMs, ...wait } = checkOptions<
      Required<Pick<ProgressOptions, 'everyMs'>> & ProgressOptions
    >(progressOptions, options);
    const commands = new RequestCommands(this.#connection, id);
    yield* this.#untilComplete(id, wait, (done) => progressReports(commands, everyMs, done));
  }

  /** Everything known about a request now. @throws NotFoundError · ExpiredError · DroppedError */
  async status(id: string): Promise<RequestStatus> {
    this.#check(id);
    return readStatus(id, new RequestCommands(this.#connection, id), this.#queue);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#waiters.close(new ClosedError('notifier'));
    await this.#agenda.stop();
    if (this.#ownsConnection) await this.#connection.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #check(id: string): void {
    checkOption('id', id, option.name());
    if (this.#closed) throw new ClosedError('notifier');
  }

  /** Runs a reader beside a wait for the completion; both end when the caller stops reading. */
  async *#untilComplete<T>(
    id: string,
    options: WaitOptions,
    read: (done: Promise<unknown>) => AsyncGenerator<T>,
  ): AsyncGenerator<T> {
    const left = new AbortController();
    const signals = options.signal ? [left.signal, options.signal] : [left.signal];
    const done = this.completion(id, { ...options, signal: AbortSignal.any(signals) });
    done.catch(() => {});
    try {
      yield* read(done);
    } finally {
      left.abort();
    }
  }
}
