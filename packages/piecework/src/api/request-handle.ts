import type {
  CompletionOutcome,
  Failure,
  FailureGroup,
  FailuresOptions,
  Notifier,
  ProgressOptions,
  ProgressReport,
  RequestStatus,
  ResultItem,
  ResultsOptions,
  SucceededItem,
  SuccessesOptions,
} from '@piecework/notifier';
import type { WaitOptions } from '@piecework/protocol';
import type { Admin } from '../operate/admin.js';
import type { Redriven, RedriveOptions } from '../operate/redrive.js';
import type { Cancelled, UpdateOptions } from '../operate/request-control.js';
import type { RunningOptions, RunningSubRequest } from '../operate/running.js';

/**
 * A request by its id. Making one does no I/O: the same handle works in the process that submitted
 * the request and in any other.
 */
export class RequestHandle<Result = unknown> {
  readonly id: string;
  readonly #notifier: Notifier;
  readonly #admin: Admin;
  #generation: number;

  /** `generation`: the life that is known to have begun; 0: none is. */
  constructor(id: string, notifier: Notifier, admin: Admin, generation = 0) {
    this.id = id;
    this.#generation = generation;
    this.#notifier = notifier;
    this.#admin = admin;
  }

  /**
   * Waits for the completion; it may have been long ago. A Redis that goes away is waited for, one that was
   * never there is told at once.
   * @throws TimeoutError · AbortError · NotFoundError · ExpiredError · LostError · DroppedError ·
   *   ConnectionError, ServerError: no Redis was ever reached, or it cannot serve Piecework as it is
   */
  completion(options: WaitOptions = {}): Promise<CompletionOutcome> {
    return this.#notifier.completion(this.id, options, this.#generation);
  }

  /**
   * The results, live while the request runs, in the order of completion or of the items.
   * Each has a `value`; `failed: true` gives failed sub-requests too, which `status` tells apart.
   * Memory stays bounded, however many there are.
   * @throws as completion
   */
  results(options?: SuccessesOptions): AsyncIterable<SucceededItem<Result>>;
  results(options: ResultsOptions): AsyncIterable<ResultItem<Result>>;
  results(options: ResultsOptions = {}): AsyncIterable<ResultItem<Result>> {
    return this.#notifier.results<Result>(this.id, options, this.#generation);
  }

  /**
   * The failed sub-requests that there are now, in the order of the items: payload, attempts, crashes
   * and error of each. `name` picks those whose error has this name.
   * @throws as completion
   */
  failures(options: FailuresOptions = {}): AsyncIterable<Failure> {
    return this.#notifier.failures(this.id, options, this.#generation);
  }

  /** The failed sub-requests by the name of their errors, with an example of each. @throws as completion */
  failureGroups(options: WaitOptions = {}): Promise<FailureGroup[]> {
    return this.#notifier.failureGroups(this.id, options, this.#generation);
  }

  /** Counts, rate and time left, again and again until the request is complete. */
  progress(options: ProgressOptions = {}): AsyncIterable<ProgressReport> {
    return this.#notifier.progress(this.id, options, this.#generation);
  }

  /** Everything known about the request now. @throws NotFoundError · ExpiredError · LostError · DroppedError */
  status(): Promise<RequestStatus> {
    return this.#notifier.status(this.id, this.#generation);
  }

  /**
   * What runs of it now, the longest first: index, worker, for how long, attempt and reported progress of each,
   * `limit` (100) of them at most. @throws as Admin.running
   */
  running(options: RunningOptions = {}): Promise<RunningSubRequest[]> {
    return this.#admin.running(this.id, options);
  }

  /**
   * Has failed sub-requests (all, or those that match) run again as a new life of the id; the results
   * of the others stay. `completion` awaits the new life from here on, and its `generation` tells: should the
   * server lose it, that is a LostError, and not the end of the life before.
   * @throws NotCompleteError, and as Admin.redrive
   */
  async redrive(options: RedriveOptions = {}): Promise<Redriven> {
    const redriven = await this.#admin.redrive(this.id, options);
    // Not the greatest: after lost writes, by a clock that is behind, the next life may have a lower one.
    this.#generation = redriven.generation;
    return redriven;
  }

  /**
   * Cancels the request: what nobody runs at once; running handlers are aborted, and what succeeds all
   * the same counts. Results and failures stay. @throws as Admin.cancel
   */
  cancel(): Promise<Cancelled> {
    return this.#admin.cancel(this.id);
  }

  /** Starts nothing more until it is resumed; what runs may end. @throws as Admin.pause */
  pause(): Promise<void> {
    return this.#admin.pause(this.id);
  }

  /** Lets it go on. @throws as Admin.pause */
  resume(): Promise<void> {
    return this.#admin.resume(this.id);
  }

  /** Changes limit, priority or tolerated failures while it runs. @throws as Admin.pause */
  update(changes: UpdateOptions): Promise<void> {
    return this.#admin.update(this.id, changes);
  }

  /** Removes the request and everything of it, whatever its state. @throws NotFoundError */
  drop(): Promise<void> {
    return this.#admin.drop(this.id);
  }
}
