import {
  type Idle,
  idleOption,
  LARGEST_VALUE_BYTES,
  LONGEST_DELAY_MS,
  type OptionTable,
  option,
  type RedisInput,
  shape,
  shardsOption,
  type Telemetry,
  TIMES,
  telemetryOption,
} from '@piecework/protocol/contract';
import type { Logger } from 'pino';
import type { Handler, TaskHandler } from './handler/handler.js';
import type { BackoffFunction } from './handler/retry-policy.js';
import type { Metrics } from './report/metrics.js';

export interface WorkerOptions {
  /** Where Redis is; a client that is passed in is never closed. */
  readonly redis: RedisInput;
  /** The queue to serve. @default 'req' */
  readonly queue?: string | undefined;
  /**
   * How many shards the queue has, from 1 to 64; every process that uses the queue must give the same number. The
   * worker serves all of them with one set of slots, and a blocking connection for each. @default 1
   */
  readonly shards?: number | undefined;
  /**
   * Slots: how many sub-requests this process runs at once, of all requests together. Too low: the process is idle
   * while handlers wait for I/O. Too high: handlers that compute delay the renewal of leases. @default 10
   */
  readonly concurrency?: number | undefined;
  /**
   * Runs the sub-requests of every request, whatever its task. Give either this or `handlers`; with neither,
   * sub-requests are pulled (`worker.subRequests()`).
   */
  readonly handler?: Handler | undefined;
  /** Run the sub-requests of the tasks that they name, and no others. */
  readonly handlers?: readonly TaskHandler[] | undefined;
  /**
   * How long this worker keeps its work without a sign of life, in ms; it renews after a third of that. Too short:
   * a worker with a busy event loop loses its work to others. Too long: the work of a dead worker waits.
   * @default 30000
   */
  readonly leaseMs?: number | undefined;
  /**
   * How long, in ms, a handler may block the event loop and keep its lease: a thread renews meanwhile, with one more
   * connection and some memory. After that time others take the work over as from a dead worker, while the handler
   * still runs. Too high: work of a stuck handler is recovered only after this time. 0: no thread.
   * @default 120000
   */
  readonly maxBlockMs?: number | undefined;
  /**
   * 'frugal': an idle worker sends a tenth of the commands, for servers that bill each. It notices later what others left
   * undone: the work of a dead worker is taken over up to 80 s after its last sign of life, instead of 35 s, and a request
   * that waits for its task starts up to 10 s later. A small request takes a round trip more. A worker that has work does
   * as any other. @default 'responsive'
   */
  readonly idle?: Idle | undefined;
  /**
   * Time slice of a request, in ms: after it the worker asks whether other requests wait. It leaves for one of a higher
   * priority at once. Requests of the same priority take turns, each for as long as ten handlers take, at least one
   * and at most twenty time slices. 0: it asks, and takes turns, after every sub-request. @default 50
   */
  readonly quantumMs?: number | undefined;
  /**
   * Longest time, in ms, that the outcome of a sub-request waits on the worker to be recorded together with others.
   * Meanwhile the worker starts sub-requests that it has read ahead. If the process is killed, these outcomes are
   * lost and their sub-requests run again. 0: each outcome is recorded at once, and nothing is read ahead. @default 80
   */
  readonly settleDelayMs?: number | undefined;
  /**
   * Returns how long a sub-request that failed waits for its next attempt, in ms, for requests with a backoff of
   * type 'custom'. @default the delayMs of the request
   */
  readonly backoff?: BackoffFunction | undefined;
  /**
   * Largest encoded result, in bytes, up to 256 MiB; a larger one fails its sub-request. @default 1048576
   */
  readonly maxResultBytes?: number | undefined;
  /**
   * Whether handlers get each payload as a JsonText, the stored text unchanged, instead of as a parsed value. A handler
   * that returns a JsonText, such as `jsonText('1.10')`, always has it stored unchanged. @default false
   */
  readonly jsonText?: boolean | undefined;
  /**
   * After how long a running handler is logged as one that runs far longer than usual, in ms. @default ten times the
   * median of its request on this worker, at least 60000; 600000 while nothing of it has succeeded
   */
  readonly slowMs?: number | undefined;
  /** Receives what the worker measures, as the `WorkerMetrics` of `@piecework/metrics`. @default nothing is measured */
  readonly metrics?: Metrics | undefined;
  /**
   * A pino logger, for the worker and `ctx.log`. @default to standard error, as text on a terminal, else as JSON: what
   * handlers log from level info on, and what the worker logs from level warn on
   */
  readonly logger?: Logger | undefined;
  /**
   * Makes a span of each handler run: `new OpenTelemetry()` of `@piecework/telemetry`. Without it nothing is
   * traced, and nothing is called. @default none
   */
  readonly telemetry?: Telemetry | undefined;
}

export interface StartOptions {
  /**
   * How long `start` waits for a Redis that answers but cannot be used yet, in ms, before it rejects; 0: not at all.
   * @default 30000
   */
  readonly unavailableMs?: number | undefined;
}

export const startOptions: OptionTable = {
  unavailableMs: option.ms(0, 86_400_000, TIMES.unavailableMs),
};

export const workerOptions: OptionTable = {
  redis: option.custom(shape.given, 'where Redis is'),
  queue: option.name('req'),
  shards: shardsOption,
  concurrency: option.integer(1, 10_000, 10),
  handler: option.custom(shape.callable, 'a function'),
  handlers: option.custom(
    shape.array(
      shape.object({ task: shape.text(0, Number.POSITIVE_INFINITY), run: shape.callable }),
      1,
    ),
    '[defineTask(name).handler(fn), …], an array; one function for all tasks is the option `handler`',
  ),
  leaseMs: option.ms(1_000, 3_600_000, 30_000),
  maxBlockMs: option.ms(0, 86_400_000, 120_000),
  idle: idleOption,
  quantumMs: option.ms(0, 3_600_000, 50),
  settleDelayMs: option.ms(0, 60_000, 80),
  backoff: option.custom(shape.callable, 'a function'),
  maxResultBytes: option.integer(1, LARGEST_VALUE_BYTES, 1_048_576),
  jsonText: option.boolean(false),
  slowMs: option.ms(1, LONGEST_DELAY_MS),
  metrics: option.custom(
    shape.object({ watch: shape.callable }),
    'a WorkerMetrics of @piecework/metrics',
  ),
  logger: option.custom(shape.object({ child: shape.callable }), 'a pino logger'),
  telemetry: telemetryOption,
};
