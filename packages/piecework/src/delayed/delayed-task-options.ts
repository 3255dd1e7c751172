import { randomBytes } from 'node:crypto';
import { type RequestOptions, requestOptions } from '@piecework/producer';
import { type OptionTable, option, type RedisInput } from '@piecework/protocol';
import { type Handler, type WorkerOptions, workerOptions } from '@piecework/worker';
import { z } from 'zod';

/** How a task is run, and when. Whatever is not said here is as for a request. */
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
   * Its name everywhere. The same one again, with the same name, arguments and options, is the same task,
   * as long as it waits or is remembered. @default 16 random bytes, 22 characters of base64url
   */
  readonly id?: string | undefined;
  /** How long it is remembered after its end, how it ended and why it failed, in ms; at least 1000. @default 3600000, an hour */
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

/** A new id: 128 random bits, 22 characters. */
export const newTaskId = (): string => randomBytes(16).toString('base64url');

export interface DelayedTasksOptions {
  /** Where Redis is; a client that is passed in is never closed. */
  readonly redis: RedisInput;
  /**
   * Queues in which this object moves what is due from the start. Those into which it puts delayed tasks
   * come by themselves. @default []
   */
  readonly moves?: readonly string[] | undefined;
}

const redis = workerOptions['redis'] as OptionTable[string];
const name = option.name();

export const delayedTasksOptions: OptionTable = {
  redis,
  moves: option.custom(z.array(name.schema), 'names of queues', []),
};

/**
 * Runs the tasks of one name. `args` is the array that `executeLater` was given. What it returns is not
 * kept; what it throws fails the attempt.
 */
export type TaskFunction = Handler;

export interface TaskWorkerOptions
  extends Pick<WorkerOptions, 'concurrency' | 'leaseMs' | 'maxBlockMs' | 'backoff' | 'logger'> {
  /** Queues to serve: a free slot takes from the first of them that has a task. 1 to 100, each once. */
  readonly queues: readonly string[];
  /** What runs the tasks, by their names. Tasks of other names are left to other workers. */
  readonly handlers: Readonly<Record<string, TaskFunction>>;
}

const isEachOnce = (names: readonly unknown[]) => new Set(names).size === names.length;

export const taskWorkerOptions: OptionTable = {
  queues: option.custom(
    z.array(name.schema).min(1).max(100).refine(isEachOnce),
    'names of 1 to 100 queues, each once',
  ),
  handlers: option.custom(
    z
      .record(
        name.schema as z.ZodString,
        z.custom<TaskFunction>((v) => typeof v === 'function'),
      )
      .refine((handlers) => Object.keys(handlers).length > 0),
    '{ name: (args, context) => … }, at least one',
  ),
  ...from(workerOptions, 'concurrency', 'leaseMs', 'maxBlockMs', 'backoff', 'logger'),
};

export const taskArguments: OptionTable[string] = option.custom(
  z.array(z.unknown()),
  'an array of the arguments',
);
