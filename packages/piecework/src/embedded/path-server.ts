import type { Machine } from './machine.js';
import { findOnPath } from './run-command.js';
import {
  executableServer,
  isRecentEnough,
  OLDEST_MAJOR,
  type ServerProgram,
  versionOf,
} from './server-program.js';

/** `redis-server`, else `valkey-server`, on PATH; one that is too old or does not run is passed over. */
export async function serverOnPath(
  machine: Machine,
  onStatus: (text: string) => void,
): Promise<ServerProgram | undefined> {
  for (const name of ['redis-server', 'valkey-server']) {
    const file = await findOnPath(name, machine.env);
    if (file === undefined) continue;
    const version = await versionOf(file, machine.env);
    if (version !== undefined && isRecentEnough(version)) {
      return executableServer('path', file, version);
    }
    const fault =
      version === undefined
        ? 'does not run'
        : `is version ${version}, older than ${OLDEST_MAJOR}.0`;
    onStatus(`${file} ${fault}: looking further`);
  }
  return undefined;
}
