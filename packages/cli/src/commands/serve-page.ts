import type { Served, ServeOptions } from '@piecework/dashboard';
import { PieceworkError } from '@piecework/protocol/contract';
import { listenFailure } from '../processes/listen-failure.js';

/**
 * Serves the dashboard; the web server is loaded only now.
 * @param flag the flag that names the port
 * @throws PieceworkError `INVALID_OPTION`: an option that is not allowed · an Error of the system whose message says what to do: the
 *   port or the address cannot be used
 */
export async function servePage(options: ServeOptions, flag: string): Promise<Served> {
  const { serveDashboard } = await import('@piecework/dashboard');
  try {
    return await serveDashboard(options);
  } catch (error) {
    if (error instanceof TypeError)
      throw new PieceworkError(`dashboard: ${error.message.replace(/^dashboard: /, '')}`, {
        code: 'INVALID_OPTION',
      });
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === undefined || !['listen', 'getaddrinfo'].includes(syscall ?? '')) throw error;
    const { port = 0, host = '127.0.0.1' } = options;
    throw listenFailure({ flag, port, host }, code);
  }
}
