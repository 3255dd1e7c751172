import { dockerServer } from './docker-server.js';
import { EmbeddedRedisError } from './embedded-redis-error.js';
import { fetchedServer } from './fetched-server.js';
import { type Machine, thisMachine } from './machine.js';
import { namedServer, serverOnPath } from './path-server.js';
import { OLDEST_MAJOR, type ServerProgram } from './server-program.js';

export interface FindServerOptions {
  /** Called with one short line for each source that is skipped, and before steps that take long. Default: nothing. */
  onStatus?: ((text: string) => void) | undefined;
  /** The machine to search. Default: this one. */
  machine?: Machine;
}

/** First the program that was chosen by name, then the cheapest source: installed, fetched without root, Docker. */
const SOURCES = [namedServer, serverOnPath, fetchedServer, dockerServer];

/**
 * Finds a server program, and fetches one if necessary.
 * @throws {EmbeddedRedisError} `NO_REDIS` when no source has one, or the program that PIECEWORK_REDIS_SERVER names cannot be used
 */
export async function findServer(options: FindServerOptions = {}): Promise<ServerProgram> {
  const machine = options.machine ?? thisMachine();
  const passedOver: string[] = [];
  const onStatus = (text: string) => {
    passedOver.push(text);
    options.onStatus?.(text);
  };
  for (const source of SOURCES) {
    const program = await source(machine, onStatus);
    if (program) return program;
  }
  throw new EmbeddedRedisError('NO_REDIS', advice(passedOver));
}

function advice(passedOver: readonly string[]): string {
  const lines = [
    'There is no Redis to start here. Do one of these:',
    `  - install redis-server or valkey-server, version ${OLDEST_MAJOR}.0 or later, with its program on PATH`,
    '  - set PIECEWORK_REDIS_SERVER to the path of such a program',
    '  - set REDIS_URL to a Redis that is running, such as redis://127.0.0.1:6379',
    '  - install Docker and start its daemon',
  ];
  if (passedOver.length > 0) lines.push('What was tried:', ...passedOver.map((t) => `  - ${t}`));
  return lines.join('\n');
}
