import { PieceworkError, shardNames } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { commonFlags } from '../flags/common-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { existingRedis } from '../flags/redis-url.js';
import { healthFlags, metricsFlags, workerFlags } from '../flags/work-flags.js';
import { defaultLogFormat } from '../terminal/log-format.js';
import { withCause } from '../terminal/with-cause.js';
import { checkWork } from '../work/check-work.js';
import type { WorkerValues } from '../work/worker-values.js';

/** `piecework worker`: runs sub-requests until it is stopped. */
export function workerCommand(program: Command): void {
  const command = program.command('worker').description('run sub-requests until it is stopped');
  const groups = [commonFlags, workerFlags, healthFlags, metricsFlags];
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const values = readFlags<WorkerValues>(given, ...groups);
    const redis = existingRedis(values.redis);
    await checkWork(values);
    const queues = shardNames(values.queue, values.shards);
    const logFormat = values.logFormat ?? defaultLogFormat();
    const { openLog } = await import('@piecework/worker/log');
    const logger = openLog(values.logLevel, logFormat);
    if (logFormat === 'json') logUncaught(logger);
    const run = async () => {
      // With --processes, also of one, a parent starts processes that end again. It needs no Worker itself.
      if (given['processes'] !== undefined) {
        const { runFleet } = await import('../processes/run-fleet.js');
        return await runFleet(redis, { ...values, logFormat }, logger);
      }
      const { runWorker } = await import('../processes/run-worker.js');
      await runWorker(redis, values, queues, logger);
    };
    await run().catch((error: unknown) => {
      // Printed by main.ts; bin/piecework.js then ends the process.
      if (logFormat !== 'json' || values.json || !isOfService(error)) throw error;
      const { code } = error;
      logger.fatal({ code, queue: values.queue }, withCause(error));
      process.exitCode = 1;
    });
    // A handler module may keep timers or pools open, which would keep the process running.
    setImmediate(() => process.exit());
  });
}

/** Whether an error belongs into the log. Wrong usage is printed for the person who gave the command. */
const isOfService = (error: unknown): error is PieceworkError =>
  error instanceof PieceworkError && !/^(INVALID_OPTION|HANDLER.*)$/.test(error.code);

/** Logs uncaught errors as JSON instead of the text that Node prints, unless a handler module listens for them. */
function logUncaught(logger: Logger): void {
  const event = 'uncaughtException';
  process.on(event, (err, origin) => {
    if (process.listenerCount(event) > 1) return;
    logger.fatal({ err, origin }, 'an uncaught error ends the process');
    process.exit(1);
  });
}
