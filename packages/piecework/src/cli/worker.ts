import { InvalidOptionError } from '@piecework/protocol';
import { Worker, type WorkerOptions, workerOptions } from '@piecework/worker';
import type { Command } from 'commander';
import { WorkerFleet } from '../fleet.js';
import { addFlags, commonFlags, optionsOf, readFlags, workerFlags } from './flags.js';
import { loadHandlers } from './load-handlers.js';
import { existingRedis } from './redis-url.js';
import { onStopSignals } from './stop-signals.js';

interface WorkerValues {
  redis?: string;
  queue: string;
  handler?: string;
  processes: number;
  drainMs: number;
}

/** Flags that a fleet passes on to each of its processes. */
export function passedOn(values: Record<string, unknown>): string[] {
  return ['concurrency', 'leaseMs', 'quantumMs', 'drainMs'].flatMap((name) =>
    values[name] === undefined
      ? []
      : [
          `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
          String(values[name]),
        ],
  );
}

/** `piecework worker`: runs sub-requests until it is stopped. */
export function workerCommand(program: Command): void {
  const command = program.command('worker').description('run sub-requests until stopped');
  addFlags(command, commonFlags, workerFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<WorkerValues>(given, commonFlags, workerFlags);
    const redis = existingRedis(values.redis);
    if (!values.handler) throw new InvalidOptionError('--handler', undefined, 'a file that exists');
    if (values.processes > 1) await runFleet(redis, values.handler, values);
    else await runWorker(redis, values.handler, values);
  });
}

async function runWorker(redis: string, file: string, values: WorkerValues): Promise<void> {
  const options = optionsOf<Partial<WorkerOptions>>(workerOptions, { ...values });
  const worker = new Worker({
    ...options,
    redis,
    handler: undefined,
    ...(await loadHandlers(file)),
  });
  try {
    await new Promise<void>((resolve, reject) => {
      const close = () => worker.close({ timeoutMs: values.drainMs }).then(resolve, reject);
      onStopSignals(() => void close());
      // A worker of a fleet ends with its parent.
      process.once('disconnect', () => void close());
      worker.start().then(() => {
        process.send?.('ready');
        if (!process.send) console.error(`worker ${worker.id} serves queue ${values.queue}`);
      }, reject);
    });
  } finally {
    // Also when it could not start: an open channel would keep the process, and its parent waiting.
    process.removeAllListeners('disconnect');
    if (process.connected) process.disconnect();
    await worker.close({ timeoutMs: 0 });
  }
}

async function runFleet(redis: string, handler: string, values: WorkerValues): Promise<void> {
  const flags = passedOn({ ...values });
  const { queue, processes } = values;
  const fleet = await WorkerFleet.start({ redis, queue, handler, processes, flags });
  console.error(`${processes} worker processes serve queue ${queue}`);
  const stopped = new Promise<void>((resolve, reject) => {
    onStopSignals(
      () => fleet.stop().then(resolve, reject),
      () => fleet.kill(),
    );
  });
  try {
    await Promise.race([stopped, fleet.lost]);
  } finally {
    await fleet.stop();
  }
}
