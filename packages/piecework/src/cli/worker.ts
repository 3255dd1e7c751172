import { Worker, type WorkerOptions, workerOptions } from '@piecework/worker';
import type { Command } from 'commander';
import { type Logger, pino } from 'pino';
import { WorkerFleet } from '../fleet.js';
import { type Health, serveHealth } from '../health-server.js';
import { addFlags, commonFlags, healthFlags, optionsOf, readFlags, workerFlags } from './flags.js';
import { existingRedis } from './redis-url.js';
import { onStopSignals } from './stop-signals.js';
import { checkWork, openWork, type WorkValues } from './work.js';

interface WorkerValues extends WorkValues {
  redis?: string;
  queue: string;
  processes: number;
  drainMs: number;
  logLevel?: string;
  healthPort?: number;
  healthHost: string;
}

const PASSED_ON = [
  ...['concurrency', 'leaseMs', 'quantumMs', 'drainMs'],
  ...['exec', 'execOutput', 'persistent', 'logLevel'],
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
    const level = values.logLevel ?? 'info';
    const logger = pino({ name: 'piecework', level }, pino.destination({ dest: 2, sync: true }));
    if (values.processes > 1) await runFleet(redis, { ...values, logLevel: level }, logger);
    else await runWorker(redis, values, logger);
  });
}

async function runWorker(redis: string, values: WorkerValues, logger: Logger): Promise<void> {
  const options = optionsOf<Partial<WorkerOptions>>(workerOptions, { ...values });
  const work = await openWork(values);
  const worker = new Worker({ ...options, redis, handler: undefined, ...work.handlers, logger });
  await using _ = await healthEndpoint(() => worker.health(), values, logger);
  const ofFleet = process.send !== undefined;
  process.on('message', (message) => {
    if (message === 'health') tellParent({ health: worker.health() });
  });
  try {
    await new Promise<void>((resolve, reject) => {
      const close = () => worker.close({ timeoutMs: values.drainMs }).then(resolve, reject);
      onStopSignals(() => void close());
      worker.start().then(() => tellParent('ready'), reject);
      // A worker of a fleet ends with its parent, which may be gone already.
      process.once('disconnect', () => void close());
      if (ofFleet && !process.connected) void close();
    });
  } finally {
    // Also when it could not start: an open channel would keep the process, and its parent waiting.
    process.removeAllListeners('disconnect');
    if (process.connected) process.disconnect();
    await worker.close({ timeoutMs: 0 });
    await work.close();
  }
}

/** Without effect when the parent has ended: a message that cannot be sent would end this process. */
function tellParent(message: unknown): void {
  if (process.connected) process.send?.(message, () => {});
}

async function runFleet(redis: string, values: WorkerValues, logger: Logger): Promise<void> {
  const flags = passedOn({ ...values });
  const { queue, processes, handler } = values;
  let fleet: WorkerFleet | undefined;
  const starting = { live: true, ready: false, why: ['the worker processes start'] };
  await using _ = await healthEndpoint(() => fleet?.health() ?? starting, values, logger);
  const onLine = (line: string) => console.log(line);
  const workers = await WorkerFleet.start({ redis, queue, handler, processes, flags, onLine });
  fleet = workers;
  logger.info({ queue, processes, pids: workers.pids }, 'worker processes started');
  const stopped = new Promise<void>((resolve, reject) => {
    onStopSignals(
      () => workers.stop().then(resolve, reject),
      () => workers.kill(),
    );
  });
  try {
    await Promise.race([stopped, workers.lost]);
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
  const server = await serveHealth(ask, { port: healthPort, host: healthHost });
  logger.info({ host: healthHost, port: server.port }, 'health endpoint listens');
  return server;
}
