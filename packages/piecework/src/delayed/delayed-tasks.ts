import { type CompletionOutcome, Notifier } from '@piecework/notifier';
import { Producer } from '@piecework/producer';
import {
  Agenda,
  ClosedError,
  Connection,
  checkOption,
  checkOptions,
  type Idle,
  idleFactor,
  option,
  PayloadError,
  QueueCommands,
  RequestExistsError,
  TIMES,
  type WaitOptions,
} from '@piecework/protocol';
import { RequestHandle } from '../api/request-handle.js';
import { Admin } from '../operate/admin.js';
import type { Cancelled } from '../operate/request-control.js';
import {
  type DelayedTasksOptions,
  delayedTasksOptions,
  type TaskArguments,
  type TaskInput,
  type TaskOptions,
  type TaskWorkerOptions,
  taskArguments,
  taskOptions,
} from './delayed-task-options.js';
import { TaskWorker } from './task-worker.js';

/** The roles that this object plays in one queue. */
interface Place {
  readonly producer: Producer;
  readonly notifier: Notifier;
  readonly admin: Admin;
  readonly mover: Agenda;
}

/**
 * How much longer each further queue makes all agendas wait while nothing is due, in ms: so they tick at most about
 * twenty times a second together, besides when something is due.
 */
const REST_PER_QUEUE_MS = 50;
/** What its users call it. */
const CALLED = 'this DelayedTasks object';
/** A name of a queue or of a task. */
const NAMED = option.name();

/** A request of one sub-request is a task to its user, and its only item is the arguments. */
function errorOfTask(error: unknown): unknown {
  if (error instanceof PayloadError)
    return new PayloadError(error.message.replace(/^item 0: /, ''), error.cause);
  return error instanceof RequestExistsError ? taskExists(error) : error;
}

function taskExists({ requestId, status, differs }: RequestExistsError): RequestExistsError {
  const words: Readonly<Record<string, string>> = { items: 'arguments', task: 'name' };
  const others = differs.map((what) => words[what] ?? what).join(', ');
  const why = others === '' ? '' : `, which differs in its ${others}`;
  const advice = 'give a new task an id of its own, or none; cancel the old one if it must not run';
  const what = `there is already a task of this id${why}; ${advice}`;
  return new RequestExistsError(requestId, status, what, differs);
}

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
 * `new DelayedTasks<{ welcome: [address: string] }>` names the tasks and their arguments: then the compiler checks them,
 * where a task is put in and where it is run.
 *
 * A task is a request of one sub-request, so that the guarantees of requests apply: it runs at least once and is
 * counted once. A task without a delay goes into the list of its priority at once. A delayed task waits in the
 * agenda, the one sorted set of its queue. The process that ticks the agenda when it is due moves it into the lane
 * of its priority, which is served before the list, in due order. There may be any number of such processes:
 * each worker is one, and each open DelayedTasks that put delayed tasks into the queue.
 */
// biome-ignore lint/suspicious/noExplicitAny: tasks of any names
export class DelayedTasks<Tasks extends TaskArguments<Tasks> = Record<string, any>>
  implements AsyncDisposable
{
  readonly #connection: Connection;
  readonly #idle: Idle;
  readonly #places = new Map<string, Place>();
  readonly #workers = new Set<TaskWorker>();
  #closing: Promise<void> | undefined;

  /** @throws InvalidOptionError */
  constructor(options: DelayedTasksOptions) {
    const { redis, moves, idle } = checkOptions<Required<DelayedTasksOptions>>(
      delayedTasksOptions,
      options,
    );
    this.#connection = Connection.open(redis, CALLED);
    this.#idle = idle;
    for (const queue of moves) this.#place(queue).mover.start();
  }

  /**
   * Runs task `name` with `args` (anything that JSON keeps), at once, after `delayMs` or at `runAt`. Resolves to its id
   * when Redis has the task. With an `id` of yours it may be called again, in any process, without a second task.
   * After an error that is `retryable`, call it again, with the `requestId` of the error as id if it has one.
   * @throws InvalidOptionError, PayloadError before anything is written · RequestExistsError: the id
   *   belongs to another task · ServerError, ConnectionError · IndeterminateError · ClosedError
   */
  async executeLater<Name extends string & keyof Tasks>(
    queue: string,
    name: Name,
    ...given: TaskInput<Tasks[Name]>
  ): Promise<string> {
    const [args = [], options = {}] = given as Partial<[readonly unknown[], TaskOptions]>;
    checkOption('name', name, NAMED);
    checkOption('args', args, taskArguments);
    const checked = checkOptions<TaskOptions>(taskOptions, options);
    const { delayMs = 0, runAt } = checked;
    // The submission refuses both together, even if one of them is 0.
    const isDelayed = runAt !== undefined || delayMs > 0;
    const { delayMs: _, ...undelayed } = checked;
    const { producer, mover } = this.#place(queue);
    const { id, generation } = await producer
      .submit([args], {
        task: name,
        limit: 1,
        results: 'discard',
        ...(isDelayed ? { expedite: true, ...checked } : undelayed),
      })
      .catch((error: unknown) => {
        throw errorOfTask(error);
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
   * Cancels a task: one that waits does not run; a running one is aborted by its `signal`.
   * @throws NotFoundError · ExpiredError · DroppedError · ServerError, ConnectionError
   */
  async cancel(queue: string, id: string): Promise<Cancelled> {
    return this.task(queue, id).cancel();
  }

  /**
   * Waits until the task has ended, or returns at once if it has, within its `retentionMs`.
   * @throws TimeoutError · AbortError · ClosedError · NotFoundError · ExpiredError · LostError · DroppedError ·
   *   ConnectionError, ServerError
   */
  async completion(
    queue: string,
    id: string,
    options: WaitOptions = {},
  ): Promise<CompletionOutcome> {
    return this.task(queue, id).completion(options);
  }

  /**
   * The handle of a task's request, for `status()`, `failures()` and the rest. No I/O.
   * @throws InvalidOptionError · ClosedError
   */
  task(queue: string, id: string): RequestHandle<never> {
    checkOption('id', id, NAMED);
    const { notifier, admin } = this.#place(queue);
    return new RequestHandle<never>(id, notifier, admin);
  }

  /** A worker of these queues, not started; closed with this object. @throws InvalidOptionError · ClosedError */
  worker(options: TaskWorkerOptions<Tasks>): TaskWorker {
    if (this.#closing) throw new ClosedError(CALLED);
    const worker = new TaskWorker(this.#connection.client, options);
    this.#workers.add(worker);
    return worker;
  }

  /**
   * Closes its workers as `TaskWorker.close` does, moves nothing more, and closes what it opened. Waiting tasks
   * keep waiting. May be called twice.
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
    // Does not wait for a server that is away.
    await this.#connection.closeSoon(this.#closePlaces());
  }

  async #closePlaces(): Promise<void> {
    // Side by side: while Redis is away a mover waits for its tick, and everything else ends now.
    const parts = [...this.#places.values()].flatMap(({ mover, producer, notifier }) => [
      ...[mover, producer, notifier],
    ]);
    await Promise.all(parts.map((part) => part.close()));
  }

  #place(queue: string): Place {
    if (this.#closing) throw new ClosedError(CALLED);
    const known = this.#places.get(queue);
    if (known) return known;
    checkOption('queue', queue, NAMED);
    const connection = this.#connection;
    const at = { redis: connection, queue };
    const place = {
      producer: new Producer(at),
      notifier: new Notifier({ ...at, idle: this.#idle }),
      admin: new Admin(at),
      mover: new Agenda(connection, new QueueCommands(connection, queue), {
        prompt: true,
        restMs: () =>
          Math.max(TIMES.tickMs * idleFactor(this.#idle), this.#places.size * REST_PER_QUEUE_MS),
      }),
    };
    this.#places.set(queue, place);
    return place;
  }
}
