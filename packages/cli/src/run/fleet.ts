import { InvalidOptionError } from '@piecework/protocol/contract';
import type { Piecework } from 'piecework/client';
import { openMetrics } from '../processes/endpoints.js';
import { restartText, WorkerFleet } from '../processes/fleet.js';
import { passedOn } from '../processes/passed-on.js';
import { say } from '../terminal/print.js';
import { discarding, type RunValues } from './values.js';

/**
 * Starts the worker processes of a run.
 * @param lost kills them, also while they start
 * @throws InvalidOptionError: they do not serve its task, and nobody else can
 */
export async function startFleet(
  pw: Piecework,
  redis: string,
  values: RunValues,
  lost: AbortSignal,
  onDiscarded: () => void,
): Promise<WorkerFleet> {
  const { queue, processes, maxRestarts, handler } = values;
  const fleet = await WorkerFleet.start({
    ...{ redis, queue, handler, processes, maxRestarts, onDiscarded },
    flags: passedOn({ ...values, ...discarding(values) }),
    metrics: values.metricsPort !== undefined,
    signal: lost,
    // Handlers may write to standard output too; here only results go there.
    onLine: say,
    // Keeps log lines and the progress bar apart.
    ...(process.stderr.isTTY ? { onErrorLine: say } : {}),
    onRestart: (restart) => say(restartText(restart)),
  });
  if (lost.aborted) fleet.kill();
  else
    await expectServed(pw, fleet, values).catch(async (error: unknown) => {
      await fleet.close();
      throw error;
    });
  return fleet;
}

/** Other processes may serve a shared queue, also later. */
async function expectServed(
  pw: Piecework,
  { pids }: WorkerFleet,
  { handler, hasOwnQueue, task }: RunValues,
): Promise<void> {
  if (handler === undefined || !hasOwnQueue) return;
  // Killed workers of an earlier run stay registered for a while.
  const workers = (await pw.admin.workers()).filter(({ pid }) => pids.includes(pid));
  const tasks = workers.map((worker) => worker.tasks);
  // None: they have ended again, which is reported elsewhere.
  if (tasks.length === 0 || tasks.some((one) => one === '*' || one.includes(task ?? ''))) return;
  const served = [...new Set(tasks.flat())].join(', ');
  throw new InvalidOptionError('--task', task, `a task that ${handler} has: ${served}`);
}

/** Serves what the processes measure at `--metrics-port`, if it is given, and says where. */
export async function serveFleetMetrics(
  { metrics }: WorkerFleet,
  { metricsPort, metricsHost }: RunValues,
): Promise<AsyncDisposable | undefined> {
  if (metricsPort === undefined || !metrics) return undefined;
  const server = await openMetrics(metrics, metricsPort, metricsHost);
  say(`metrics: http://${metricsHost}:${server.port}/metrics`);
  return server;
}
