import { type RequestOptions, requestOptions } from '@piecework/producer';
import {
  type Idle,
  idleOption,
  type Jsonify,
  type OptionTable,
  option,
  type RedisInput,
  shape,
} from '@piecework/protocol';
import { type Handler, type WorkerOptions, workerOptions } from '@piecework/worker';

/** The tasks of a program: the array of arguments of each name. */
// biome-ignore lint/suspicious/noExplicitAny: arguments of any types; an interface has no index signature
export type TaskArguments<Tasks> = { readonly [Name in keyof Tasks]: readonly any[] };

/** What follows the name of a task: its arguments, which may be left out if it has none, and options. */
export type TaskInput<Args> =
  IsAny<Args> extends true
    ? [args?: readonly unknown[], options?: TaskOptions]
    : [] extends Args
      ? [args?: Args, options?: TaskOptions]
      : [args: Args, options?: TaskOptions];

/** Whether nothing is known of a type. */
type IsAny<Type> = 0 extends 1 & Type ? true : false;

/** How and when a task runs. All else is as for a request. */
export interface TaskOptions
  extends Pick<
    RequestOptions,
    | 'delayMs'
    | 'runAt'
    | 'priority'
    | 'attempts'
    | 'backoff'
    | 'attemptTimeoutMs'
    | 'maxCrashes'
    | 'unavailableMs'
    | 'maxPayloadBytes'
    | 'signal'
  > {
  /**
   * The name of this task in every process. A call with the same id, name, arguments and options is the same task,
   * until its `retentionMs` has ended. @default a random one
   */
  readonly id?: string | undefined;
  /** How long its outcome and failure are kept after its end, in ms; at least 1000. @default 3600000, an hour */
  readonly retentionMs?: number | undefined;
}

const from = (table: OptionTable, ...names: string[]): OptionTable =>
  Object.fromEntries(names.map((name) => [name, table[name] as OptionTable[string]]));

export const taskOptions: OptionTable = {
  ...from(requestOptions, 'id', 'delayMs', 'runAt', 'priority', 'attempts', 'backoff'),
  ...from(requestOptions, 'attemptTimeoutMs', 'maxCrashes', 'unavailableMs', 'maxPayloadBytes'),
  ...from(requestOptions, 'signal'),
  retentionMs: option.ms(1_000, 31_536_000_000, 3_600_000),
};

export interface DelayedTasksOptions {
  /** Where Redis is; a client that is passed in is never closed. */
  readonly redis: RedisInput;
  /**
   * Queues in which this object moves due tasks from the start. Queues into which it puts delayed tasks are added
   * automatically. @default []
   */
  readonly moves?: readonly string[] | undefined;
  /** 'frugal': while it waits, it sends a tenth of the commands, for servers that bill each. @default 'responsive' */
  readonly idle?: Idle | undefined;
}

const redis = workerOptions['redis'] as OptionTable[string];
const name = option.name();

export const delayedTasksOptions: OptionTable = {
  redis,
  moves: option.custom(shape.array(name.fits), 'names of queues', []),
  idle: idleOption,
};

/**
 * Runs the tasks of one name. `args` is the array that was passed to `executeLater`. The return value is not kept;
 * an exception fails the attempt.
 */
// biome-ignore lint/suspicious/noExplicitAny: arguments of any types
export type TaskFunction<Args = any> = Handler<Args>;

// biome-ignore lint/suspicious/noExplicitAny: tasks of any names
export interface TaskWorkerOptions<Tasks extends TaskArguments<Tasks> = Record<string, any>>
  extends Pick<
    WorkerOptions,
    'concurrency' | 'leaseMs' | 'maxBlockMs' | 'idle' | 'backoff' | 'logger'
  > {
  /** Queues to serve: a free slot takes from the first of them that has a task. 1 to 100, each once. */
  readonly queues: readonly string[];
  /** The functions that run tasks, by name. Tasks of other names are left to other workers. */
  readonly handlers: { readonly [Name in keyof Tasks]?: TaskFunction<Jsonify<Tasks[Name]>> };
}

const isEachOnce = (names: unknown) => {
  const all = names as readonly unknown[];
  return new Set(all).size === all.length;
};

const areTasks = (given: unknown) => {
  if (!shape.object({})(given)) return false;
  const tasks = Object.entries(given as object);
  return tasks.length > 0 && tasks.every(([task, run]) => name.fits(task) && shape.callable(run));
};

export const taskWorkerOptions: OptionTable = {
  queues: option.custom(
    shape.both(shape.array(name.fits, 1, 100), isEachOnce),
    'names of 1 to 100 queues, each once',
  ),
  handlers: option.custom(areTasks, '{ name: (args, context) => … }, at least one'),
  ...from(workerOptions, 'concurrency', 'leaseMs', 'maxBlockMs', 'idle', 'backoff', 'logger'),
};

export const taskArguments: OptionTable[string] = option.custom(
  Array.isArray,
  'an array of the arguments',
);
