import { resolve } from 'node:path';
import { EmbeddedRedisError } from './embedded-redis-error.js';
import type { Machine } from './machine.js';
import { findOnPath } from './run-command.js';
import {
  executableServer,
  isRecentEnough,
  OLDEST_MAJOR,
  type ServerProgram,
  versionOf,
} from './server-program.js';

/**
 * The program that PIECEWORK_REDIS_SERVER names, by a path or by its name on PATH. If it is set, no other program is
 * searched for.
 * @throws {EmbeddedRedisError} `NO_REDIS` when it is absent, too old or does not run
 */
export async function namedServer({ env }: Machine): Promise<ServerProgram | undefined> {
  const name = env['PIECEWORK_REDIS_SERVER'];
  if (!name) return undefined;
  const file = name.includes('/') ? resolve(name) : await findOnPath(name, env);
  const found = file === undefined ? 'is not on PATH' : await usable(file, env);
  if (typeof found !== 'string') return found;
  throw new EmbeddedRedisError('NO_REDIS', `PIECEWORK_REDIS_SERVER: ${file ?? name} ${found}`);
}

/** `redis-server`, else `valkey-server`, on PATH. A program that is too old or does not run is skipped. */
export async function serverOnPath(
  machine: Machine,
  onStatus: (text: string) => void,
): Promise<ServerProgram | undefined> {
  for (const name of ['redis-server', 'valkey-server']) {
    const file = await findOnPath(name, machine.env);
    if (file === undefined) continue;
    const found = await usable(file, machine.env);
    if (typeof found !== 'string') return found;
    onStatus(`${file} ${found}: skipped`);
  }
  return undefined;
}

/** The server program in a file, or why it cannot be used. */
async function usable(file: string, env: NodeJS.ProcessEnv): Promise<ServerProgram | string> {
  const version = await versionOf(file, env);
  if (version === undefined) return 'does not run';
  if (!isRecentEnough(version)) return `is version ${version}, older than ${OLDEST_MAJOR}.0`;
  return executableServer('path', file, version);
}
