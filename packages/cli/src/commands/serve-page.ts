import type { Served, ServeOptions } from '@piecework/dashboard';
import { InvalidOptionError } from '@piecework/protocol/contract';

/**
 * Serves the dashboard; the web server is loaded only now.
 * @param flag the flag that names the port
 * @throws InvalidOptionError: an option that is not allowed · an Error of the system whose message says what to do: the
 *   port or the address cannot be used
 */
export async function servePage(options: ServeOptions, flag: string): Promise<Served> {
  const { serveDashboard } = await import('@piecework/dashboard');
  try {
    return await serveDashboard(options);
  } catch (error) {
    if (error instanceof TypeError)
      throw new InvalidOptionError('dashboard', undefined, error.message);
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === undefined || !['listen', 'getaddrinfo'].includes(syscall ?? '')) throw error;
    const { port, host = '127.0.0.1' } = options;
    const said =
      WHY[code] ?? `the page cannot be served there (${code} on ${host}); choose another port`;
    // Not wrong usage: the same command may succeed at another time.
    throw Object.assign(new Error(`${flag} ${port}: ${said}`), { code, syscall });
  }
}

/** By the code of the system. */
const WHY: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there; choose another port, or 0 for a free one',
  EACCES: 'this user may not listen there; choose a port from 1024 on',
  EADDRNOTAVAIL: 'this machine does not have the address of --host',
  ENOTFOUND: 'the address of --host is not known',
};
