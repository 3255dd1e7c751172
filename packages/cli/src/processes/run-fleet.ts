import type { Logger } from 'pino';
import { print } from '../terminal/print.js';
import { ALL_SIGNALS, onStopSignals } from '../terminal/stop-signals.js';
import type { WorkerValues } from '../work/worker-values.js';
import { processCount } from './cores.js';
import { openEndpoints } from './endpoints.js';
import { restartText, WorkerFleet, type WorkerRestart } from './fleet.js';
import { passedOn } from './passed-on.js';
import { trimWhenIdle } from './trim-memory.js';

/** Has worker processes run sub-requests until a signal stops them. */
export async function runFleet(redis: string, values: WorkerValues, logger: Logger): Promise<void> {
  const flags = passedOn({ ...values });
  const { queue, maxRestarts, handler } = values;
  const processes = processCount(values.processes);
  const stopping = new AbortController();
  let fleet: WorkerFleet | undefined;
  const textOf = async () => (await fleet?.metrics?.text()) ?? '';
  onStopSignals(
    () => stopping.abort(),
    () => {
      logger.warn(
        { queue },
        'ended at once by a second signal; other workers take over the work of its processes',
      );
      fleet?.kill();
    },
    ALL_SIGNALS,
    () =>
      logger.warn(
        { queue },
        'the npx or npm that started this worker has ended; it drains and ends',
      ),
  );
  const begins = { live: true, ready: false, why: ['the worker processes are starting'] };
  const measures = values.metricsPort !== undefined;
  // Until the processes are started there is nothing to count, and Prometheus may ask already.
  const page = { contentType: 'text/plain; version=0.0.4; charset=utf-8', text: textOf };
  const metrics = measures ? page : undefined;
  await using _ = await openEndpoints(() => fleet?.health() ?? begins, metrics, values, logger);
  const { signal } = stopping;
  // `pid` of a log line is the parent's.
  const onRestart = (restart: WorkerRestart) => {
    const { why: _, pid: endedPid, ...fields } = restart;
    logger.warn({ queue, endedPid, ...fields }, restartText(restart));
  };
  const starting = { redis, queue, handler, processes, maxRestarts, flags, metrics: measures };
  const workers = await WorkerFleet.start({ ...starting, onLine: print, onRestart, signal });
  fleet = workers;
  trimWhenIdle(() => true);
  logger.info({ queue, processes, pids: workers.pids }, 'worker processes started');
  try {
    const asked = new Promise((resolve) => signal.addEventListener('abort', resolve));
    if (!signal.aborted) await Promise.race([asked, workers.lost]);
  } finally {
    await workers.close();
  }
}
