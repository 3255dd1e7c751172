import { createRequire } from 'node:module';
import type { Served, ServeOptions } from '@piecework/dashboard';
import { PieceworkError } from '@piecework/protocol/contract';
import { listenFailure } from '../processes/listen-failure.js';

const NAME = '@piecework/dashboard';

type Page = typeof import('@piecework/dashboard');

/**
 * Loads the page and its web server: a package of its own, which most who use the command line do not need.
 * @param command that needs it, with the flag by which it does: 'dev --dashboard'
 * @throws PieceworkError `NOT_INSTALLED`: it is not there, or of another version than the command line
 */
export async function loadPage(command: string): Promise<Page> {
  const require = createRequire(import.meta.url);
  const versionOf = (file: string) => (require(file) as { version: string }).version;
  const version = versionOf('../../package.json');
  let found: string;
  try {
    found = versionOf(`${NAME}/package.json`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    found = '';
  }
  if (found === version) return import('@piecework/dashboard');
  const which = found === '' ? 'which is not installed' : `but ${found} is installed`;
  // What npx installs for one command is in a folder of its own, which nobody installs into.
  const [how, install] = import.meta.url.includes('/_npx/')
    ? ['Have npx fetch both', `npx -p @piecework/cli -p ${NAME} piecework ${command}`]
    : ['Install it where @piecework/cli is', `npm install ${NAME}@${version}`];
  throw new PieceworkError(
    `${command} needs the package ${NAME} ${version}, ${which}. ${how}:\n${install}`,
    { code: 'NOT_INSTALLED' },
  );
}

/**
 * Serves the dashboard.
 * @param flag the flag that names the port
 * @throws PieceworkError `INVALID_OPTION`: an option that is not allowed · an Error of the system whose message says what to do: the
 *   port or the address cannot be used
 */
export async function servePage(
  { serveDashboard }: Page,
  options: ServeOptions,
  flag: string,
): Promise<Served> {
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
