import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dataFolder } from './data-folder.js';
import { containerRuns } from './docker-server.js';
import { EmbeddedRedisError } from './embedded-redis-error.js';
import { findServer } from './find-server.js';
import { freePort, releasePort } from './free-port.js';
import { runCommand } from './run-command.js';
import type { ServerCommand, ServerOrigin, ServerProgram } from './server-program.js';
import { type Supervised, supervise } from './supervise.js';
import { waitForAnswer } from './wait-for-answer.js';

export interface EmbeddedRedisOptions {
  /** Called with one short line for each step. Default: nothing. */
  onStatus?: ((text: string) => void) | undefined;
  /** Folder for the data and the log of the server; created if it does not exist. Default: a new private one. */
  dir?: string;
  /** TCP port on 127.0.0.1. Default: a free one. */
  port?: number;
  /**
   * Its password, without which nobody can read or write. Default: a random one. `''`: none; then every user of this
   * machine can, and can have your workers run what they submit.
   */
  password?: string;
  /** Further settings of the server, such as `['--maxmemory', '100mb']`; they override ours. */
  args?: readonly string[];
  /** Whether the folder stays when the server has ended. Default: only when `dir` is given. */
  keep?: boolean;
  /** `aof`: an append-only file in the folder, so that a server started there again has its data. Default `none`. */
  persistence?: 'none' | 'aof';
  /** The program to run. Default: what `findServer` finds. */
  server?: ServerProgram;
}

/** A server on loopback, with a password. It ends with this process, if it was not closed before. */
export interface EmbeddedRedis extends AsyncDisposable {
  /** `redis://default:<password>@127.0.0.1:<port>`. Keep it out of command lines and logs, which others may read. */
  url: string;
  /**
   * As `url`, for programs of this machine that are to end with the server: Piecework connects by it only while the
   * server runs, and never to another one at its port.
   */
  ownUrl: string;
  host: string;
  port: number;
  /** `''`: none. */
  password: string;
  /** Folder with its data and its log, `redis.log`. */
  dir: string;
  /** Process id of the server (of the client that holds the container, with Docker). */
  pid: number;
  origin: ServerOrigin;
  /** Resolves with the end of its log when the server has ended, for whatever reason. */
  ended: Promise<string>;
  /** Rejects (`REDIS_ENDED`) when the server has ended and was not closed. Need not be awaited. */
  lost: Promise<never>;
  /** Ends the server and waits until it and its folder are gone. May be called again at any time. */
  close(): Promise<void>;
  /** Sends a signal to the server, such as SIGKILL or SIGSTOP; does nothing if the server has ended. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

const HOST = '127.0.0.1';
const PORT_TRIES = 10;
/** In the log of a server that has its port. */
const LISTENS = /Ready to accept connections/;
const PORT_TAKEN = /address already in use|port is already allocated/i;

/**
 * Starts a private Redis and waits until it answers. It does not keep this process running.
 * @throws {EmbeddedRedisError} `NO_REDIS` (no program was found) or `REDIS_NOT_STARTED` (its port is taken, others may
 *   write into its folder or could replace it, or it says something else at the end of its log)
 */
export async function startRedis(options: EmbeddedRedisOptions = {}): Promise<EmbeddedRedis> {
  const server = options.server ?? (await findServer({ onStatus: options.onStatus }));
  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await freePort());
    const started = await startOnce(server, port, options);
    if (typeof started !== 'string') {
      options.onStatus?.(`${server.title} answers at ${HOST}:${started.port}`);
      return started;
    }
    if (options.port === undefined) releasePort(port);
    const canRetry = options.port === undefined && PORT_TAKEN.test(started);
    if (!canRetry || tries === PORT_TRIES) {
      const message =
        PORT_TAKEN.test(started) && started.includes(`:${port}`)
          ? `port ${port}: address already in use; choose another port, or none for a free one`
          : `${server.title} did not start on port ${port}:\n${started.trim()}`;
      throw new EmbeddedRedisError('REDIS_NOT_STARTED', message);
    }
  }
}

/** @returns the end of the log when the server did not start */
async function startOnce(
  server: ServerProgram,
  port: number,
  options: EmbeddedRedisOptions,
): Promise<EmbeddedRedis | string> {
  const dir =
    options.dir === undefined
      ? await mkdtemp(join(tmpdir(), 'piecework-redis-'))
      : await dataFolder(options.dir);
  const keep = options.keep ?? options.dir !== undefined;
  const settings = [...serverSettings(options.persistence ?? 'none'), ...(options.args ?? [])];
  const command = server.command({ dir, port, settings });
  const logFile = join(dir, 'redis.log');
  const { password = randomPassword() } = options;
  const logBefore = await sizeOf(logFile);
  const removeFolder = keep ? undefined : dir;
  const supervised = await supervise(command, { input: secrets(password), logFile, removeFolder });

  const end = new AbortController();
  const isOurs = (info: string) =>
    // Process ids in a container are others; but a container runs only if it has got the port.
    command.container === undefined
      ? info.includes(`process_id:${supervised.pid}\r\n`)
      : containerRuns(command.file, command.container);
  const hasPort = async () => password === '' || LISTENS.test(await textBehind(logFile, logBefore));
  const { signal } = end;
  const answered = waitForAnswer({ host: HOST, port, password, hasPort, isOurs, signal });
  const outcome = await Promise.race([answered, supervised.ended]);
  end.abort();
  if (outcome !== 'answered') {
    await supervised.close();
    return outcome === 'silent' ? `no answer; ${await supervised.ended}` : outcome;
  }
  supervised.unref();
  const { origin } = server;
  return embeddedRedis(supervised, { port, password, dir, origin, command });
}

function embeddedRedis(
  supervised: Supervised,
  place: Pick<EmbeddedRedis, 'port' | 'password' | 'dir' | 'origin'> & { command: ServerCommand },
): EmbeddedRedis {
  const { port, password, dir, origin, command } = place;
  let closed: Promise<void> | undefined;
  // Only once: later, the port may belong to another server.
  const close = () => {
    closed ??= supervised.close().then(() => releasePort(port));
    return closed;
  };
  const lost = supervised.ended.then((log) => {
    if (closed) return new Promise<never>(() => {});
    const message = `the Redis that was started here has ended by itself:\n${log.trim()}`;
    throw new EmbeddedRedisError('REDIS_ENDED', message);
  });
  lost.catch(() => {});
  const url = `redis://${password && `default:${encodeURIComponent(password)}@`}${HOST}:${port}`;
  return {
    url,
    ownUrl: `${url}?serverPid=${supervised.pid}`,
    host: HOST,
    port,
    password,
    dir,
    pid: supervised.pid,
    origin,
    ended: supervised.ended,
    lost,
    close,
    kill: (signal) => sendSignal(supervised.pid, command, signal),
    [Symbol.asyncDispose]: close,
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

const sizeOf = (file: string) =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );

const textBehind = async (file: string, from: number) =>
  (await readFile(file).catch(() => Buffer.alloc(0))).subarray(from).toString();

/** A password that nobody can guess, of characters that a URL may contain. */
export const randomPassword = () => randomBytes(18).toString('base64url');

/** Settings that no command line may show. Each byte is escaped, as a password may contain any. */
function secrets(password: string): string {
  const escaped = [...Buffer.from(password)].map(
    (byte) => `\\x${byte.toString(16).padStart(2, '0')}`,
  );
  // The second is how the replicas of a cluster sign in at their masters.
  return ['requirepass', 'masterauth'].map((name) => `${name} "${escaped.join('')}"\n`).join('');
}

function serverSettings(persistence: 'none' | 'aof'): string[] {
  return [
    ...['--save', '', '--appendonly', persistence === 'aof' ? 'yes' : 'no'],
    ...['--protected-mode', 'yes', '--maxmemory-policy', 'noeviction'],
    // By default, a master that shuts down waits ten seconds for a replica that is behind.
    ...['--shutdown-timeout', '0'],
  ];
}
