import type { Health, MetricsPage, PageServer } from 'piecework/health';
import type { Logger } from 'pino';
import type { WorkerValues } from '../work/worker-values.js';
import { type Address, listenFailure } from './listen-failure.js';

type Addresses = Pick<WorkerValues, 'healthPort' | 'healthHost' | 'metricsPort' | 'metricsHost'>;

/**
 * Serves the health of a worker, or of a fleet, at `--health-port`, and its metrics at `--metrics-port`, if they are
 * given; both by one server, if they are the same.
 */
export async function openEndpoints(
  ask: () => Health | Promise<Health>,
  metrics: MetricsPage | undefined,
  values: Addresses,
  logger: Logger,
): Promise<AsyncDisposable> {
  const { healthPort, healthHost: host, metricsPort, metricsHost = host } = values;
  const shares = metricsPort === healthPort && metricsHost === host;
  const servers: PageServer[] = [];
  const close = async () => {
    for (const server of servers) await server.close();
  };
  try {
    if (healthPort !== undefined) {
      // Loaded on demand: few workers have an endpoint.
      const { serveHealth } = await import('piecework/health');
      const at = { flag: '--health-port', port: healthPort, host };
      const also = shares && metrics ? { metrics } : {};
      const server = await listening(at, serveHealth(ask, { port: healthPort, host, ...also }));
      servers.push(server);
      logger.info({ host, port: server.port }, 'health endpoint listens');
    }
    if (metricsPort !== undefined && metrics && !shares) {
      const { port } = await openMetrics(metrics, metricsPort, metricsHost, servers);
      logger.info({ host: metricsHost, port }, 'metrics endpoint listens');
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { [Symbol.asyncDispose]: close };
}

/** Serves metrics alone, and adds the server to `servers`. */
export async function openMetrics(
  metrics: MetricsPage,
  port: number,
  host: string,
  servers: PageServer[] = [],
): Promise<PageServer> {
  const { metricsAnswer, servePages } = await import('piecework/health');
  const pages = { '/metrics': () => metricsAnswer(metrics) };
  const at = { flag: '--metrics-port', port, host };
  const server = await listening(at, servePages(pages, { port, host }));
  servers.push(server);
  return server;
}

/** @throws Error that names the flag, when the port cannot be used */
export async function listening(at: Address, server: Promise<PageServer>): Promise<PageServer> {
  return server.catch((error: Error) => {
    throw listenFailure(at, (error.cause as NodeJS.ErrnoException).code ?? '');
  });
}
