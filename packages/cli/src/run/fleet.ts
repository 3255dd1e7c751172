import { openMetrics } from '../processes/endpoints.js';
import { restartText, WorkerFleet } from '../processes/fleet.js';
import { passedOn } from '../processes/passed-on.js';
import { say } from '../terminal/say.js';
import { discarding, type RunValues } from './values.js';

/** Starts the worker processes of a run. */
export function startFleet(
  redis: string,
  values: RunValues,
  onDiscarded: () => void,
): Promise<WorkerFleet> {
  const { queue, processes, maxRestarts, handler } = values;
  return WorkerFleet.start({
    ...{ redis, queue, handler, processes, maxRestarts, onDiscarded },
    flags: passedOn({ ...values, ...discarding(values) }),
    metrics: values.metricsPort !== undefined,
    // Handlers may write to standard output too; here only results go there.
    onLine: say,
    // Keeps log lines and the progress bar apart.
    ...(process.stderr.isTTY ? { onErrorLine: say } : {}),
    onRestart: (restart) => say(restartText(restart)),
  });
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
