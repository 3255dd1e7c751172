import { type CompletionOutcome, Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import {
  Agenda,
  ClosedError,
  Connection,
  checkOption,
  checkOptions,
  encodePayload,
  option,
  QueueCommands,
  type WaitOptions,
} from '@piecework/protocol';
import { RequestHandle } from '../api/request-handle.js';
import { Admin } from '../operate/admin.js';
import type { Cancelled } from '../operate/request-control.js';
import {
  type DelayedTasksOptions,
  delayedTasksOptions,
  newTaskId,
  type TaskOptions,
  type TaskWorkerOptions,
  taskArguments,
  taskOptions,
} from './delayed-task-options.js';
import { TaskWorker } from './task-worker.js';

/** What this object has of one queue. */
interface Place {
  readonly producer: Producer;
  readonly notifier: Notifier;
  readonly admin: Admin;
  readonly mover: Agenda;
}

/**
 * How long each queue more lets all of them rest while nothing is due: so all together are looked at some twenty
 * times a second at most, besides when something is due.
 */
const REST_PER_QUEUE_MS = 50;
/** A name of a queue or of a task. */
const NAMED = option.name();

/**
 * Runs functions later, or now, in other processes: each call is a task in a queue, with a priority.
 *
 * ```ts
 * await using tasks = new DelayedTasks({ redis });
 * const id = await tasks.executeLater('mail', 'welcome', ['ann@example.org'], { delayMs: 60_000 });
 *
 * const worker = tasks.worker({
 *   queues: ['urgent', 'mail'],
 *   handlers: { welcome: async ([address]: [string], { signal }) => send(address, signal) },
 * });
 * await worker.start();
 * ```
 *
 * A task is a request of one sub-request, so all that holds of requests holds of tasks: run at least
 * once, counted once. One without a delay goes into the list of its priority at once. One with a delay
 * waits in the agenda, the one sorted set of its queue; whoever looks at it when it is due moves it into
 * the lane of its priority, which is served in due order, before the list. Any number of such movers do
 * no harm: each DelayedTasks that put delayed tasks into a queue is one as long as it is open, and so is
 * each worker.
 */
export class DelayedTasks implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #places = new Map<string, Place>();
  readonly #workers = new Set<TaskWorker>();
  #closing: Promise<void> | undefined;

  /** @throws InvalidOptionError */
  constructor(options: DelayedTasksOptions) {
    const { redis, moves } = checkOptions<Required<DelayedTasksOptions>>(
      delayedTasksOptions,
      options,
    );
    this.#connection = Connection.open(redis);
    for (const queue of moves) this.#place(queue).mover.start();
  }

  /**
   * Has task `name` run with `args` (anything that JSON keeps), at once, in `delayMs` or at `runAt`;
   * answers its id. It resolves when Redis has the task. With an `id` of yours it may be called again, in
   * any process, without a second task; an error that is `retryable` tells as `requestId` which id to
   * call it again with.
   * @throws InvalidOptionError, PayloadError before anything is written · RequestExistsError: the id
   *   belongs to another task · ServerError, ConnectionError · IndeterminateError · ClosedError
   */
  async executeLater(
    queue: string,
    name: string,
    args: readonly unknown[] = [],
    options: TaskOptions = {},
  ): Promise<string> {
    checkOption('name', name, NAMED);
    checkOption('args', args, taskArguments);
    const checked = checkOptions<TaskOptions>(taskOptions, options);
    const { delayMs = 0, runAt } = checked;
    // With both the submission refuses them, also where one of them is 0.
    const isDelayed = runAt !== undefined || delayMs > 0;
    const { delayMs: _, ...undelayed } = checked;
    // Here, where it is not one item among others.
    encodePayload(args, checked.maxPayloadBytes);
    const { producer, mover } = this.#place(queue);
    const { id, generation } = await producer.submit([args], {
      id: newTaskId(),
      ...(isDelayed ? { ...checked, expedite: true } : undelayed),
      task: name,
      limit: 1,
      results: 'discard',
    });
    if (isDelayed && !this.#closing) {
      mover.start();
      // A generation is about the server's time of its creation.
      const dueInMs = runAt === undefined ? delayMs : Number(runAt) - generation;
      mover.wakeWithin(dueInMs);
    }
    return id;
  }

  /**
   * Takes a task back: one that waits is not run; one that runs is told to stop.
   * @throws NotFoundError · ExpiredError · DroppedError · ServerError, ConnectionError
   */
  async cancel(queue: string, id: string): Promise<Cancelled> {
    return this.task(queue, id).cancel();
  }

  /**
   * Waits until the task has ended; it may have been long ago, within its `retentionMs`.
   * @throws TimeoutError · AbortError · NotFoundError · ExpiredError · DroppedError
   */
  async completion(
    queue: string,
    id: string,
    options: WaitOptions = {},
  ): Promise<CompletionOutcome> {
    return this.task(queue, id).completion(options);
  }

  /** Its request: for `status()`, `failures()` and the rest. No I/O. @throws InvalidOptionError */
  task(queue: string, id: string): RequestHandle<never> {
    checkOption('id', id, NAMED);
    const { notifier, admin } = this.#place(queue);
    return new RequestHandle<never>(id, notifier, admin);
  }

  /** A worker of these queues, not started; closed with this object. @throws InvalidOptionError */
  worker(options: TaskWorkerOptions): TaskWorker {
    if (this.#closing) throw new ClosedError('delayed tasks');
    const worker = new TaskWorker(this.#connection.client, options);
    this.#workers.add(worker);
    return worker;
  }

  /**
   * Closes its workers as `TaskWorker.close` does, moves nothing more, and closes what it opened. Tasks
   * that wait go on waiting.
   */
  close(options: { timeoutMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(options: { timeoutMs?: number }): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.close(options)));
    const places = [...this.#places.values()];
    await Promise.all(places.map(({ mover }) => mover.stop()));
    await Promise.all(places.map(({ producer }) => producer.close()));
    await Promise.all(places.map(({ notifier }) => notifier.close()));
    await this.#connection.close();
  }

  #place(queue: string): Place {
    if (this.#closing) throw new ClosedError('delayed tasks');
    const known = this.#places.get(queue);
    if (known) return known;
    checkOption('queue', queue, NAMED);
    const connection = this.#connection;
    const at = { redis: connection, queue };
    const place = {
      producer: new Producer(at),
      notifier: new Notifier(at),
      admin: new Admin(at),
      mover: new Agenda(connection, new QueueCommands(connection, queue), {
        prompt: true,
        restMs: () => this.#places.size * REST_PER_QUEUE_MS,
      }),
    };
    this.#places.set(queue, place);
    return place;
  }
}
