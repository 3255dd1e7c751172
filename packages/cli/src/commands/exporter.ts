import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { exporterFlags } from '../flags/exporter-flags.js';
import { queuesOf } from '../flags/queue-names.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { existingRedis } from '../flags/redis-url.js';
import { listening } from '../processes/endpoints.js';
import { defaultLogFormat, type LogFormat } from '../terminal/log-format.js';
import { onStopSignals } from '../terminal/stop-signals.js';

interface ExporterValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  port: number;
  host: string;
  queues?: string;
  targetSeconds: number;
  logLevel: string;
  logFormat?: LogFormat;
}

/** How long a read keeps trying while Redis is away, in ms: a scrape should rather say so. */
const PATIENCE_MS = 2_000;
/** A queue that cannot be read is logged so often at most, in ms. */
const SAID_EACH_MS = 60_000;

/** `piecework exporter`: answers Prometheus and scalers with figures of queues, until it is stopped. */
export function exporterCommand(program: Command): void {
  const command = program
    .command('exporter')
    .description('answer Prometheus (/metrics) and scalers (/scale) with figures of queues');
  addFlags(command, commonFlags, exporterFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<ExporterValues>(given, commonFlags, exporterFlags);
    const { port, host, targetSeconds, logLevel, logFormat } = values;
    const redis = existingRedis(values.redis);
    const stopped = new Promise<void>((done) => onStopSignals(() => done()));
    // Loaded on demand: help and wrong usage need nothing of it.
    const [{ openLog }, { Piecework }, { servePages }, { QueueMetrics, queuePages }] =
      await Promise.all([
        import('@piecework/worker/log'),
        import('piecework/client'),
        import('piecework/health'),
        import('@piecework/metrics'),
      ]);
    const logger = openLog(logLevel, logFormat ?? defaultLogFormat());
    const clients = queuesOf(values).map((one) => {
      const { name: queue, shards } = one;
      return { queue, pw: new Piecework({ redis, queue, shards, unavailableMs: PATIENCE_MS }) };
    });
    const said = new Map<string, number>();
    /** Queues of which the log says last that they cannot be read. */
    const away = new Set<string>();
    const metrics = new QueueMetrics({
      queues: Object.fromEntries(clients.map(({ queue, pw }) => [queue, pw.admin])),
      targetSeconds,
      onError: (err, queue) => {
        const now = performance.now();
        if (now - (said.get(queue) ?? Number.NEGATIVE_INFINITY) < SAID_EACH_MS) return;
        said.set(queue, now);
        away.add(queue);
        logger.warn(
          { err, queue },
          'the queue cannot be read; its metrics are left out until it can',
        );
      },
      onRecovery: (queue) => {
        if (away.delete(queue)) logger.info({ queue }, 'the queue can be read again');
      },
    });
    const at = { flag: '--port', port, host };
    const server = await listening(at, servePages(queuePages(metrics), { port, host }));
    logger.info({ host, port: server.port, queues: metrics.queues }, 'exporter listens');
    await stopped;
    await server.close();
    await Promise.all(clients.map(({ pw }) => pw.close()));
  });
}
