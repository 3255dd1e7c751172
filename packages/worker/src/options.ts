import {
  LARGEST_VALUE_BYTES,
  LONGEST_DELAY_MS,
  type OptionTable,
  option,
  type RedisInput,
  shardsOption,
  TIMES,
} from '@piecework/protocol';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Handler, TaskHandler } from './handler/handler.js';
import type { BackoffFunction } from './handler/retry-policy.js';

export interface WorkerOptions {
  /** Where Redis is; a client that is passed in is never closed. */
  readonly redis: RedisInput;
  /** The queue to serve. @default 'req' */
  readonly queue?: string | undefined;
  /**
   * How many shards the queue has, from 1 to 64: the same for all who use it. All of them are served, with
   * one set of slots; a blocking connection for each. @default 1
   */
  readonly shards?: number | undefined;
  /**
   * Slots: how many sub-requests this process runs at once, of all requests together.
   * Too low leaves the process idle while handlers wait for I/O; too high delays the renewal of
   * leases when handlers compute. @default 10
   */
  readonly concurrency?: number | undefined;
  /**
   * Runs the sub-requests of every request, whatever its task. Either this or `handlers`; with neither,
   * sub-requests are pulled (`worker.subRequests()`).
   */
  readonly handler?: Handler | undefined;
  /** Run the sub-requests of the tasks they name, and no others. */
  readonly handlers?: readonly TaskHandler[] | undefined;
  /**
   * How long this worker is believed without a sign of life, in ms; renewed at a third. Too short
   * and a busy event loop loses its work to others; too long and the work of a dead worker waits.
   * @default 30000
   */
  readonly leaseMs?: number | undefined;
  /**
   * How long, in ms, a handler may hold up the event loop and keep its lease: a thread of its own
   * renews meanwhile (one more connection, and some memory). After that time others take the work over
   * as from a dead worker, while the handler still runs. Too high a value delays the recovery of work that
   * a stuck handler holds. 0: no thread. @default 120000
   */
  readonly maxBlockMs?: number | undefined;
  /**
   * Time slice, in ms: after it the worker asks whether anyone of the same or a higher priority
   * waits, and leaves if so. 0: after every sub-request. @default 50
   */
  readonly quantumMs?: number | undefined;
  /**
   * How long a sub-request that failed waits for its next attempt, in ms, where its request asks for a
   * backoff of type 'custom'. @default the delayMs of the request
   */
  readonly backoff?: BackoffFunction | undefined;
  /**
   * Largest encoded result, in bytes, up to 256 MiB; a larger one fails its sub-request. @default 1048576
   */
  readonly maxResultBytes?: number | undefined;
  /**
   * From when on a running handler is logged as one that runs far longer than usual, in ms. @default ten
   * times the median of its request on this worker, at least 60000; 600000 where nothing of it succeeded yet
   */
  readonly slowMs?: number | undefined;
  /** A pino logger. @default JSON lines from level warn on, to standard error */
  readonly logger?: Logger | undefined;
}

export interface StartOptions {
  /**
   * How long a Redis that answers and cannot be used yet is waited for, in ms, before `start` rejects;
   * 0: not at all. @default 30000
   */
  readonly unavailableMs?: number | undefined;
}

export const startOptions: OptionTable = {
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
};

const isFunction = z.custom<Handler>((value) => typeof value === 'function');

export const workerOptions: OptionTable = {
  redis: option.custom(
    z.any().refine((v) => v !== undefined && v !== null),
    'where Redis is',
  ),
  queue: option.name('req'),
  shards: shardsOption,
  concurrency: option.integer(1, 10_000, 10),
  handler: option.custom(isFunction, 'a function'),
  handlers: option.custom(
    z.array(z.object({ task: z.string(), run: isFunction })).min(1),
    'task handlers, made by defineTask(…).handler(fn)',
  ),
  leaseMs: option.ms(1_000, 3_600_000, 30_000),
  maxBlockMs: option.ms(0, 86_400_000, 120_000),
  quantumMs: option.ms(0, 3_600_000, 50),
  backoff: option.custom(
    z.custom<BackoffFunction>((value) => typeof value === 'function'),
    'a function',
  ),
  maxResultBytes: option.integer(1, LARGEST_VALUE_BYTES, 1_048_576),
  slowMs: option.ms(1, LONGEST_DELAY_MS),
  logger: option.custom(
    z.looseObject({ child: z.custom((v) => typeof v === 'function') }),
    'a pino logger',
  ),
};
