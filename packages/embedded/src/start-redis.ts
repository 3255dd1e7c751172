import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { containerRuns } from './docker-server.js';
import { EmbeddedRedisError } from './embedded-redis-error.js';
import { findServer } from './find-server.js';
import { freePort, releasePort } from './free-port.js';
import { runCommand } from './run-command.js';
import type { ServerCommand, ServerOrigin, ServerProgram } from './server-program.js';
import { type Supervised, supervise } from './supervise.js';
import { waitForAnswer } from './wait-for-answer.js';

export interface EmbeddedRedisOptions {
  /** Told what happens, one short line each. Default: nobody. */
  onStatus?: ((text: string) => void) | undefined;
  /** Folder for the server's data and log, made if missing. Default: a new private one. */
  dir?: string;
  /** TCP port on 127.0.0.1. Default: a free one. */
  port?: number;
  /** Further settings of the server, such as `['--maxmemory', '100mb']`; they win over ours. */
  args?: readonly string[];
  /** Leave the folder behind when the server ends. Default: only when `dir` is given. */
  keep?: boolean;
  /** `aof`: an append-only file in the folder, so that a restart on it finds its data. Default `none`. */
  persistence?: 'none' | 'aof';
  /** The program to run. Default: what `findServer` finds. */
  server?: ServerProgram;
}

/** A server on loopback that ends with this process, at the latest. */
export interface EmbeddedRedis extends AsyncDisposable {
  /** `redis://127.0.0.1:<port>` */
  url: string;
  host: string;
  port: number;
  /** Folder with its data and its log, `redis.log`. */
  dir: string;
  /** Process id of the server (of the client that holds the container, with Docker). */
  pid: number;
  origin: ServerOrigin;
  /** Resolves with the end of its log when the server has ended, for whatever reason. */
  ended: Promise<string>;
  /** Ends the server and waits until it and its folder are gone. May be called twice. */
  stop(): Promise<void>;
  /** Sends the server a signal, such as SIGKILL or SIGSTOP; nothing happens if it has ended. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

const HOST = '127.0.0.1';
const PORT_TRIES = 10;
const PORT_TAKEN = /address already in use|port is already allocated/i;

/**
 * Starts a private Redis and waits until it answers. It does not keep this process running.
 * @throws {EmbeddedRedisError} `NO_REDIS` (none found) or `REDIS_NOT_STARTED` (with its last words)
 */
export async function startRedis(options: EmbeddedRedisOptions = {}): Promise<EmbeddedRedis> {
  const server = options.server ?? (await findServer({ onStatus: options.onStatus }));
  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await freePort());
    const started = await startOnce(server, port, options);
    if (typeof started !== 'string') {
      options.onStatus?.(`${server.title} answers at ${started.url}`);
      return started;
    }
    if (options.port === undefined) releasePort(port);
    const worthAnother = options.port === undefined && PORT_TAKEN.test(started);
    if (!worthAnother || tries === PORT_TRIES) {
      const message = `${server.title} did not start on port ${port}:\n${started.trim()}`;
      throw new EmbeddedRedisError('REDIS_NOT_STARTED', message);
    }
  }
}

/** Returns the end of the log when the server did not come up. */
async function startOnce(
  server: ServerProgram,
  port: number,
  options: EmbeddedRedisOptions,
): Promise<EmbeddedRedis | string> {
  const dir = await makeFolder(options.dir);
  const keep = options.keep ?? options.dir !== undefined;
  const settings = [...serverSettings(options.persistence ?? 'none'), ...(options.args ?? [])];
  const command = server.command({ dir, port, settings });
  const logFile = join(dir, 'redis.log');
  const supervised = await supervise(command, { logFile, removeFolder: keep ? undefined : dir });

  const end = new AbortController();
  const isOurs = (info: string) =>
    // A container counts its processes from one; but it runs only if it has the port.
    command.container === undefined
      ? info.includes(`process_id:${supervised.pid}\r\n`)
      : containerRuns(command.file, command.container);
  const answered = waitForAnswer({ host: HOST, port, isOurs, signal: end.signal });
  const outcome = await Promise.race([answered, supervised.ended]);
  end.abort();
  if (outcome !== 'answered') {
    await supervised.end();
    return outcome === 'silent' ? `no answer; ${await supervised.ended}` : outcome;
  }
  supervised.unref();
  const { origin } = server;
  return embeddedRedis(supervised, { port, dir, origin, command });
}

function embeddedRedis(
  supervised: Supervised,
  place: { port: number; dir: string; origin: ServerOrigin; command: ServerCommand },
): EmbeddedRedis {
  const { port, dir, origin, command } = place;
  let stopped: Promise<void> | undefined;
  // Once: by the second time the port may be another server's.
  const stop = () => {
    stopped ??= supervised.end().then(() => releasePort(port));
    return stopped;
  };
  return {
    url: `redis://${HOST}:${port}`,
    host: HOST,
    port,
    dir,
    pid: supervised.pid,
    origin,
    ended: supervised.ended,
    stop,
    kill: (signal) => sendSignal(supervised.pid, command, signal),
    [Symbol.asyncDispose]: stop,
  };
}

async function sendSignal(
  pid: number,
  { file, container }: ServerCommand,
  signal: NodeJS.Signals,
): Promise<void> {
  if (container !== undefined) {
    await runCommand(file, ['kill', '--signal', signal, container], { env: process.env });
    return;
  }
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function makeFolder(dir: string | undefined): Promise<string> {
  if (dir === undefined) return mkdtemp(join(tmpdir(), 'piecework-redis-'));
  const folder = resolve(dir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

function serverSettings(persistence: 'none' | 'aof'): string[] {
  return [
    ...['--save', '', '--appendonly', persistence === 'aof' ? 'yes' : 'no'],
    ...['--protected-mode', 'yes', '--maxmemory-policy', 'noeviction'],
    // By default a stopping master waits ten seconds for a replica that is behind.
    ...['--shutdown-timeout', '0'],
  ];
}
