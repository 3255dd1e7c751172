import { PieceworkError, shardNames } from '@piecework/protocol';
import { Worker, type WorkerOptions, workerOptions } from '@piecework/worker';
import type { Command } from 'commander';
import { type Health, serveHealth } from 'piecework';
import type { Logger } from 'pino';
import { addFlags, commonFlags, healthFlags, optionsOf, readFlags, workerFlags } from './flags.js';
import { restartText, WorkerFleet, type WorkerRestart } from './fleet.js';
import { HandlerError } from './handler-error.js';
import { defaultLogFormat, type LogFormat, openLog } from './log.js';
import { existingRedis } from './redis-url.js';
import { ALL_SIGNALS, onStopSignals } from './stop-signals.js';
import { withCause } from './with-cause.js';
import { checkWork, openWork, type WorkValues } from './work.js';
import type { WorkerNews } from './worker-process.js';

interface WorkerValues extends WorkValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  processes: number;
  maxRestarts: number;
  leaseMs: number;
  maxBlockMs: number;
  drainMs: number;
  logLevel: string;
  logFormat?: LogFormat;
  healthPort?: number;
  healthHost: string;
}

const PASSED_ON = [
  ...['shards', 'concurrency', 'leaseMs', 'maxBlockMs', 'slowMs', 'quantumMs', 'drainMs'],
  ...['maxResultBytes', 'exec', 'execFields', 'execInput', 'execOutput', 'execStderr'],
  ...['persistent', 'logLevel', 'logFormat'],
];

/** Flags that a fleet passes on to each of its processes. */
export function passedOn(values: Record<string, unknown>): string[] {
  return PASSED_ON.flatMap((name) => {
    const value = values[name];
    const named = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (value === undefined || value === false) return [];
    // In one word: a command may begin with a dash.
    return [value === true ? named : `${named}=${value}`];
  });
}

/** `piecework worker`: runs sub-requests until it is stopped. */
export function workerCommand(program: Command): void {
  const command = program.command('worker').description('run sub-requests until stopped');
  const groups = [commonFlags, workerFlags, healthFlags];
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const values = readFlags<WorkerValues>(given, ...groups);
    const redis = existingRedis(values.redis);
    checkWork(values);
    const queues = shardNames(values.queue, values.shards);
    // What a handler module holds open, such as a timer or a pool, is no reason to stay.
    const end = () => setImmediate(() => process.exit());
    const logFormat = values.logFormat ?? defaultLogFormat();
    const logger = openLog(values.logLevel, logFormat);
    if (logFormat === 'json') logUncaught(logger);
    // One process under a parent is started again when it ends; one by itself is not.
    const run =
      given['processes'] !== undefined
        ? runFleet(redis, { ...values, logFormat }, logger)
        : runWorker(redis, values, queues, logger);
    await run
      .catch((error: unknown) => {
        if (logFormat !== 'json' || values.json || !isOfService(error)) throw error;
        const { code } = error;
        logger.fatal({ code, queue: values.queue }, withCause(error));
        process.exitCode = 1;
      })
      .finally(end);
  });
}

/** Whoever reads the log is to read of it: what is wrong with the command is for the person who gave it. */
const isOfService = (error: unknown): error is PieceworkError =>
  error instanceof PieceworkError && !/^(INVALID_OPTION|HANDLER.*)$/.test(error.code);

/** Who reads JSON lines cannot read the stack that Node prints. A handler module may have a listener of its own. */
function logUncaught(logger: Logger): void {
  const event = 'uncaughtException';
  process.on(event, (err, origin) => {
    if (process.listenerCount(event) > 1) return;
    logger.fatal({ err, origin }, 'an error that nobody caught ends the process');
    process.exit(1);
  });
}

async function runWorker(
  redis: string,
  values: WorkerValues,
  queues: readonly string[],
  logger: Logger,
): Promise<void> {
  // From here on, a signal or the end of the parent is heard; both end what has begun until then.
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  onStopSignals(
    stop,
    () => logger.warn('ended at once by a second signal; its work goes to others'),
    ALL_SIGNALS,
  );
  process.once('disconnect', () => {
    logger.warn('the parent process has ended; this worker drains, and ends');
    stop();
  });
  const ofFleet = process.send !== undefined;
  if (ofFleet && !process.connected) stop();

  try {
    await serve(redis, values, queues, logger, stopping.signal);
  } catch (error) {
    if (!ofFleet || !process.connected) throw error;
    // The parent says it, once for all of its processes.
    await tellParent({ failed: failureOf(error) });
    process.exitCode = 1;
  } finally {
    // An open channel would keep the process, and its parent waiting.
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
  const work = await openWork(values, () => tellParent({ discarded: true }));
  const worker = new Worker({ ...options, redis, handler: undefined, ...work.handlers, logger });
  await using _ = await healthEndpoint(() => worker.health(), values, logger);
  process.on('message', (message) => {
    if (message === 'health') void tellParent({ health: worker.health() });
  });
  if (process.connected) tellProgress(worker);
  const { leaseMs, maxBlockMs, drainMs } = values;
  const ready = { worker: worker.id, queues, blockMs: maxBlockMs || leaseMs, drainMs };
  try {
    await new Promise<void>((resolve, reject) => {
      const close = () => worker.close({ timeoutMs: drainMs }).then(resolve, reject);
      if (signal.aborted) return void close();
      signal.addEventListener('abort', () => void close());
      worker.start().then(
        () => tellParent({ ready }),
        // Being stopped while it starts is no failure.
        (error: unknown) => signal.aborted || reject(error),
      );
    });
  } finally {
    await worker.close({ timeoutMs: 0 });
    await work.close();
  }
}

/** Resolves also when the parent has ended: a message that cannot be sent would end this process. */
function tellParent(news: WorkerNews): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected && process.send) process.send(news, () => resolve());
    else resolve();
  });
}

/** The first outcome at once, as a process may not live long; then one of each second. */
function tellProgress(worker: Worker): void {
  worker.once('settled', () => {
    void tellParent({ settled: true });
    setTimeout(() => tellProgress(worker), 1_000).unref();
  });
}

function failureOf(thrown: unknown): NonNullable<WorkerNews['failed']> {
  if (thrown instanceof HandlerError) return { why: thrown.message, wrong: thrown.code };
  if (thrown instanceof PieceworkError) return { why: withCause(thrown) };
  return { why: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) };
}

async function runFleet(redis: string, values: WorkerValues, logger: Logger): Promise<void> {
  const flags = passedOn({ ...values });
  const { queue, processes, maxRestarts, handler } = values;
  const stopping = new AbortController();
  let fleet: WorkerFleet | undefined;
  onStopSignals(
    () => stopping.abort(),
    () => {
      logger.warn(
        { queue },
        'ended at once by a second signal; what its processes had goes to others',
      );
      fleet?.kill();
    },
    ALL_SIGNALS,
  );
  const begins = { live: true, ready: false, why: ['the worker processes start'] };
  await using _ = await healthEndpoint(() => fleet?.health() ?? begins, values, logger);
  const onLine = (line: string) => console.log(line);
  const { signal } = stopping;
  // `pid` is the parent's in each line.
  const onRestart = (restart: WorkerRestart) => {
    const { why: _, pid: endedPid, ...fields } = restart;
    logger.warn({ queue, endedPid, ...fields }, restartText(restart));
  };
  const starting = { redis, queue, handler, processes, maxRestarts, flags };
  const workers = await WorkerFleet.start({ ...starting, onLine, onRestart, signal });
  fleet = workers;
  logger.info({ queue, processes, pids: workers.pids }, 'worker processes started');
  try {
    const asked = new Promise((resolve) => signal.addEventListener('abort', resolve));
    if (!signal.aborted) await Promise.race([asked, workers.lost]);
  } finally {
    await workers.stop();
  }
}

async function healthEndpoint(
  ask: () => Health | Promise<Health>,
  { healthPort, healthHost }: WorkerValues,
  logger: Logger,
): Promise<AsyncDisposable> {
  if (healthPort === undefined) return { [Symbol.asyncDispose]: async () => {} };
  const at = { port: healthPort, host: healthHost };
  const server = await serveHealth(ask, at).catch((error: Error) => {
    const { code } = error.cause as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'another process listens there' : 'it cannot be had';
    const said = `--health-port ${healthPort}: ${why} (${code} on ${healthHost}); name another port, or 0 for a free one`;
    // No wrong usage: the same command may do at another time.
    throw Object.assign(new Error(said), { code, syscall: 'listen' });
  });
  logger.info({ host: healthHost, port: server.port }, 'health endpoint listens');
  return server;
}
