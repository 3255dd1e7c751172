import type {
  CompletionOutcome,
  Notifier,
  ProgressOptions,
  ProgressReport,
  RequestStatus,
  ResultItem,
  ResultsOptions,
} from '@piecework/notifier';
import type { WaitOptions } from '@piecework/protocol';
import type { Admin } from './admin.js';

/**
 * A request by its id. Making one does no I/O: the same handle works in the process that submitted
 * the request and in any other.
 */
export class RequestHandle<Result = unknown> {
  readonly id: string;
  readonly #notifier: Notifier;
  readonly #admin: Admin;
  readonly #generation: number;

  /** `generation`: the life that is known to have begun; 0: none is. */
  constructor(id: string, notifier: Notifier, admin: Admin, generation = 0) {
    this.id = id;
    this.#generation = generation;
    this.#notifier = notifier;
    this.#admin = admin;
  }

  /**
   * Waits for the completion; it may have been long ago.
   * @throws TimeoutError · AbortError · NotFoundError · ExpiredError · DroppedError
   */
  completion(options: WaitOptions = {}): Promise<CompletionOutcome> {
    return this.#notifier.completion(this.id, options, this.#generation);
  }

  /**
   * The results, live while the request runs, in the order of completion or of the items.
   * `failed: true` gives failed sub-requests too. Memory stays bounded, however many there are.
   * @throws as completion
   */
  results(options: ResultsOptions = {}): AsyncIterable<ResultItem<Result>> {
    return this.#notifier.results<Result>(this.id, options);
  }

  /** Counts, rate and time left, again and again until the request is complete. */
  progress(options: ProgressOptions = {}): AsyncIterable<ProgressReport> {
    return this.#notifier.progress(this.id, options);
  }

  /** Everything known about the request now. @throws NotFoundError · ExpiredError · DroppedError */
  status(): Promise<RequestStatus> {
    return this.#notifier.status(this.id);
  }

  /** Removes the request and everything of it, whatever its state. @throws NotFoundError */
  drop(): Promise<void> {
    return this.#admin.drop(this.id);
  }
}
