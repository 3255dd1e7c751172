import type {
  CompletionOutcome,
  Failure,
  FailureGroup,
  FailureGroupsOptions,
  FailuresOptions,
  NamedChannel,
  Notifier,
  ProgressOptions,
  ProgressReport,
  RequestDetails,
  RequestEvent,
  RequestEventsOptions,
  ResultItem,
  Results,
  ResultsOptions,
  SucceededItem,
  SuccessesOptions,
} from '@piecework/notifier';
import type { JsonText, WaitOptions } from '@piecework/protocol';
import type { Admin } from '../operate/admin.js';
import type { RunningOptions, UpdateOptions } from '../operate/options.js';
import type { Redriven, RedriveOptions } from '../operate/redrive.js';
import type { Cancelled, Changed } from '../operate/request-control.js';
import type { RunningSubRequest } from '../operate/running.js';
import type { Traced } from './traced.js';

/**
 * A request by its id. Making one does no I/O: the same handle works in the process that submitted
 * the request and in any other. The handle of a submission is of the request that was submitted: when another one uses
 * the id, its calls end with a LostError.
 */
export class RequestHandle<Result = unknown> {
  readonly id: string;
  readonly #notifier: Notifier;
  readonly #admin: Admin;
  #generation: number;
  /** Of a request that this process submitted. */
  #named: NamedChannel | undefined;
  readonly #traced: Traced | undefined;

  /** @internal `generation`: one that is known to have begun; 0: none is. */
  constructor(
    id: string,
    notifier: Notifier,
    admin: Admin,
    generation = 0,
    named: NamedChannel | undefined = undefined,
    traced: Traced | undefined = undefined,
  ) {
    this.id = id;
    this.#generation = generation;
    this.#named = named;
    this.#traced = traced;
    this.#notifier = notifier;
    this.#admin = admin;
  }

  /**
   * Waits for the completion, or returns at once if the request is complete. While Redis is away the wait continues;
   * if Redis was never reached, it fails at once.
   * @throws InvalidOptionError · TimeoutError · AbortError · ClosedError · NotFoundError · ExpiredError · LostError ·
   *   DroppedError · ConnectionError, ServerError: no Redis was ever reached, or it cannot serve Piecework as it is
   */
  completion(options: WaitOptions = {}): Promise<CompletionOutcome> {
    const wait = () => this.#notifier.completion(this.id, options, this.#generation, this.#named);
    return this.#traced ? this.#traced.completion(this.id, wait) : wait();
  }

  /**
   * The results, live while the request runs, in the order of completion or of the items. Each has a `value`;
   * with `failed: true` failed sub-requests come too, and `status` distinguishes them. Memory stays bounded,
   * however many there are.
   *
   * They end when the request is complete, without an error, however it ended. Sub-requests that failed, or were
   * cancelled because the request was cancelled or its deadline passed, have no result. So check `outcome` behind the
   * loop: `const results = request.results(); for await (…) …; results.outcome?.throwIfFailed()`.
   * @throws InvalidOptionError at once; in the loop as completion, and ResultsDiscardedError: the request keeps no
   *   results, and `failed` is not set · ResultsLostError: Redis lost its last writes, or the request was redriven before
   *   all failures were read
   */
  results(
    options: ResultsOptions & { readonly jsonText: true },
  ): Results<ResultItem<JsonText<Result>>>;
  results(options?: SuccessesOptions): Results<SucceededItem<Result>>;
  results(options: ResultsOptions): Results<ResultItem<Result>>;
  results(options: ResultsOptions = {}): Results<ResultItem<Result | JsonText<Result>>> {
    return this.#notifier.results<Result>(this.id, options, this.#generation, this.#named);
  }

  /**
   * The sub-requests that have failed by now, in the order of the items: payload, attempts, crashes and error of
   * each. `name` selects those whose error has this name.
   * @throws as completion
   */
  failures(options: FailuresOptions = {}): AsyncIterable<Failure> {
    return this.#notifier.failures(this.id, options, this.#generation);
  }

  /**
   * The failed sub-requests by kind: name of the error and message, except for numbers, paths, names with dots and quoted
   * words in it. The most frequent first, with an example of each. @throws as completion
   */
  failureGroups(options: FailureGroupsOptions = {}): Promise<FailureGroup[]> {
    return this.#notifier.failureGroups(this.id, options, this.#generation);
  }

  /** Counts, rate and time left, every `everyMs` until the request is complete. @throws as completion */
  progress(options: ProgressOptions = {}): AsyncIterable<ProgressReport> {
    return this.#notifier.progress(this.id, options, this.#generation);
  }

  /**
   * What happens to the request, live, until it is complete: an event for each sub-request that succeeds or fails, in
   * the order of completion; `progress` every `progressMs`; `completed` as the last. Each event has a `cursor`:
   * `events({ cursor })` continues behind it, in any process, and after a redrive with what that does. While the
   * consumer is busy nothing is read ahead. Nothing is written to Redis for it, except as by `results`.
   * @throws as completion · ResultsLostError as results
   */
  events(options: RequestEventsOptions = {}): AsyncGenerator<RequestEvent<Result>> {
    return this.#notifier.events<Result>(this.id, options, this.#generation, this.#named);
  }

  /**
   * Everything known about the request now.
   * @throws NotFoundError · ExpiredError · LostError · DroppedError · ConnectionError, ServerError after
   *   `unavailableMs`, or at once if Redis was never reached
   */
  status(): Promise<RequestDetails> {
    return this.#notifier.status(this.id, this.#generation);
  }

  /**
   * The sub-requests that run now, the longest first: index, worker, duration, attempt and reported progress of
   * each. At most `limit`, 100 by default. @throws as Admin.running
   */
  running(options: RunningOptions = {}): Promise<RunningSubRequest[]> {
    return this.#admin.running(this.id, options, this.#generation);
  }

  /**
   * Runs failed sub-requests (all, or those that match) again, as a new generation; the results of the others stay.
   * From here on `completion` awaits the new generation. If the server loses it, that is a LostError, and not the
   * completion of the generation before.
   * @throws NotCompleteError, and as Admin.redrive
   */
  async redrive(options: RedriveOptions = {}): Promise<Redriven> {
    const redriven = await this.#admin.redrive(this.id, options, this.#generation);
    // Not the greater one: after lost writes, with a clock that is behind, the next generation may be lower.
    // cure: a handle that redrives a request knows its new generation
    this.#generation = redriven.generation;
    this.#named = undefined;
    return redriven;
  }

  /**
   * Cancels the request. What does not run yet is cancelled at once; running handlers are aborted, and those that
   * still succeed are counted. Results and failures stay. @throws as Admin.cancel
   */
  cancel(): Promise<Cancelled> {
    return this.#admin.cancel(this.id, this.#generation);
  }

  /**
   * Pauses the request: nothing of it starts until `resume`, once its workers have learnt of it (usually within
   * milliseconds); what runs may end. @throws as Admin.pause
   */
  pause(): Promise<Changed> {
    return this.#admin.pause(this.id, this.#generation);
  }

  /** Resumes the paused request; a delay or a hold stays. @throws as Admin.pause */
  resume(): Promise<Changed> {
    return this.#admin.resume(this.id, this.#generation);
  }

  /** Changes limit, priority or tolerated failures while it runs. @throws as Admin.pause */
  update(changes: UpdateOptions): Promise<void> {
    return this.#admin.update(this.id, changes, this.#generation);
  }

  /** Removes the request and everything of it, whatever its state. @throws as Admin.drop */
  drop(): Promise<void> {
    return this.#admin.drop(this.id, this.#generation);
  }
}
