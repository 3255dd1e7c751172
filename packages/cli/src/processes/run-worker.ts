import type { WorkerMetrics } from '@piecework/metrics/worker';
import { PieceworkError } from '@piecework/protocol/contract';
import { Worker, type WorkerOptions, workerOptions } from '@piecework/worker';
import type { Logger } from 'pino';
import { optionsOf } from '../flags/read-flags.js';
import { ALL_SIGNALS, onStopSignals } from '../terminal/stop-signals.js';
import { withCause } from '../terminal/with-cause.js';
import { HandlerError } from '../work/handler-error.js';
import { openWork } from '../work/work.js';
import type { WorkerValues } from '../work/worker-values.js';
import { openEndpoints } from './endpoints.js';
import { trimWhenIdle } from './trim-memory.js';
import { MEASURES, type WorkerNews } from './worker-process.js';

/** How long a server may refuse the password of a running worker, or a right, until the process ends, in ms. */
const REFUSED_MS = 5_000;
/** Without a refusal for so long, in ms, or for two leases, it is refused anew: some calls come once a lease. */
const FORGOTTEN_MS = 60_000;

/** Runs sub-requests in this process until a signal or the end of the parent stops it. */
export async function runWorker(
  redis: string,
  values: WorkerValues,
  queues: readonly string[],
  logger: Logger,
): Promise<void> {
  // Also while it starts.
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  onStopSignals(
    stop,
    () => logger.warn('ended at once by a second signal; other workers take over its work'),
    ALL_SIGNALS,
    () => logger.warn('the npx or npm that started this worker has ended; it drains and ends'),
  );
  process.once('disconnect', () => {
    logger.warn('the parent process has ended; this worker drains and ends');
    stop();
  });
  const ofFleet = process.send !== undefined;
  if (ofFleet && !process.connected) stop();

  try {
    await serve(redis, values, queues, logger, stopping.signal);
  } catch (error) {
    if (!ofFleet || !process.connected) throw error;
    // The parent reports the error, once for all of its processes.
    await notifyParent({ failed: failureOf(error) });
    process.exitCode = 1;
  } finally {
    // An open channel would keep this process and its parent running.
    process.removeAllListeners('disconnect');
    if (process.connected) process.disconnect();
  }
}

/** Works until `signal` aborts. */
async function serve(
  redis: string,
  values: WorkerValues,
  queues: readonly string[],
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  const options = optionsOf<Partial<WorkerOptions>>(workerOptions, { ...values });
  const work = await openWork(values, () => notifyParent({ discarded: true }));
  const metrics = await measuring(values);
  const measured = metrics ? { metrics } : {};
  const own = { redis, handler: undefined, ...work.handlers, logger, ...measured };
  const worker = new Worker({ ...options, ...own });
  await using _ = await openEndpoints(() => worker.health(), metrics, values, logger);
  const sayMetrics = async () => {
    if (metrics && process.connected) await notifyParent({ metrics: await metrics.snapshot() });
  };
  process.on('message', (message) => {
    if (message === 'health') void notifyParent({ health: worker.health() });
    if (message === 'metrics') void sayMetrics();
  });
  if (process.connected) notifyProgress(worker);
  const { leaseMs, maxBlockMs, drainMs } = values;
  const ready = { worker: worker.id, queues, blockMs: maxBlockMs || leaseMs, drainMs };
  try {
    await new Promise<void>((resolve, reject) => {
      const close = () => worker.close({ timeoutMs: drainMs }).then(resolve, reject);
      if (signal.aborted) return void close();
      signal.addEventListener('abort', () => void close());
      const refusals = new Refusals(Math.max(FORGOTTEN_MS, 2 * leaseMs));
      worker.on('error', (error) => {
        // Its URL does not change: only a new process may have another password, or another user.
        // cure: a worker that is refused by the server ends
        if (isRefused(error) && refusals.last()) reject(error);
      });
      worker.start().then(
        () => {
          trimWhenIdle(() => worker.health().running === 0);
          return notifyParent({ ready });
        },
        // A worker that is stopped while it starts has not failed.
        (error: unknown) => signal.aborted || reject(error),
      );
    });
  } finally {
    await worker.close({ timeoutMs: 0 });
    await work.close();
    await sayMetrics();
  }
}

/** What receives the measurements of the worker, if this process or its parent serves them. */
async function measuring({ metricsPort }: WorkerValues): Promise<WorkerMetrics | undefined> {
  const forParent = process.env[MEASURES] !== undefined;
  // Programs that a handler starts have another parent.
  delete process.env[MEASURES];
  if (!forParent && metricsPort === undefined) return undefined;
  // Loaded on demand, with prom-client.
  const { WorkerMetrics } = await import('@piecework/metrics/worker');
  return new WorkerMetrics();
}

/** Sends a message to the parent. Never rejects: the parent may have ended. */
function notifyParent(news: WorkerNews): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected && process.send) process.send(news, () => resolve());
    else resolve();
  });
}

/** Reports the first outcome at once, as the process may end soon; then one each second. */
function notifyProgress(worker: Worker): void {
  worker.once('settled', () => {
    void notifyParent({ settled: true });
    setTimeout(() => notifyProgress(worker), 1_000).unref();
  });
}

/** Whether the server refused user or password, or lacks a command or its user a right. */
const isRefused = (error: unknown): error is PieceworkError =>
  error instanceof PieceworkError && (error.code === 'PASSWORD' || error.code === 'NO_RIGHT');

/** Calls that were refused. What is refused is tried again within seconds, as the right may have been granted. */
class Refusals {
  #firstMs = -Infinity;
  #latestMs = -Infinity;

  constructor(readonly forgottenMs: number) {}

  /** Notes one. Returns whether calls have been refused for so long that the process is to end. */
  last(): boolean {
    const now = performance.now();
    if (now - this.#latestMs > this.forgottenMs) this.#firstMs = now;
    this.#latestMs = now;
    return now - this.#firstMs >= REFUSED_MS;
  }
}

function failureOf(thrown: unknown): NonNullable<WorkerNews['failed']> {
  if (thrown instanceof HandlerError) return { why: thrown.message, wrong: thrown.code };
  if (isRefused(thrown)) return { why: withCause(thrown), wrong: thrown.code };
  if (thrown instanceof PieceworkError) return { why: withCause(thrown) };
  return { why: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) };
}
