import type { Health } from 'piecework/health';
import type { Logger } from 'pino';
import type { WorkerValues } from '../work/worker-values.js';

/** Serves the health of a worker, or of a fleet, at `--health-port`, if it is given. */
export async function healthEndpoint(
  ask: () => Health | Promise<Health>,
  { healthPort, healthHost }: WorkerValues,
  logger: Logger,
): Promise<AsyncDisposable> {
  if (healthPort === undefined) return { [Symbol.asyncDispose]: async () => {} };
  // Loaded on demand: few workers have an endpoint.
  const { serveHealth } = await import('piecework/health');
  const at = { port: healthPort, host: healthHost };
  const server = await serveHealth(ask, at).catch((error: Error) => {
    const { code } = error.cause as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'another process listens there' : 'it cannot be opened';
    const said = `--health-port ${healthPort}: ${why} (${code} on ${healthHost}); choose another port, or 0 for a free one`;
    // Not wrong usage: the same command may succeed at another time.
    throw Object.assign(new Error(said), { code, syscall: 'listen' });
  });
  logger.info({ host: healthHost, port: server.port }, 'health endpoint listens');
  return server;
}
