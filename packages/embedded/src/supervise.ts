import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { ServerCommand } from './server-program.js';

/*
 * A server has to end with its parent, also when the parent is killed by SIGKILL. So a shell runs between the two, in a
 * session of its own, so that Ctrl-C in the terminal reaches neither the shell nor the server. The shell has one end of
 * a pipe, and only the parent has the other. When the pipe closes, because the parent closes it or has ended, a watcher
 * ends the server by SIGTERM, and by SIGKILL after four seconds. When the server has ended, for whatever reason, the
 * shell prints the last lines of its log, and the signal that ended it, and cleans up.
 *
 * Other users of the machine may read the arguments of every process, and files that the umask lets them read. So the
 * server reads its password from descriptor 3, a pipe, and only this user may read the files that the server creates.
 *
 * Arguments: folder to remove ('' for none), container to remove ('' for none), log file, command.
 * Output: the server's process id on stdout; the end of the log on stderr.
 */
const SUPERVISOR = `
PATH=$PATH:/usr/bin:/bin
umask 077
folder=$1 container=$2 log=$3
shift 3
exec 4<&0 </dev/null
"$@" <&3 >>"$log" 2>&1 3<&- 4<&- &
server=$!
exec 3<&-
echo "$server"
exec >/dev/null
{
  while read -r _; do :; done <&4
  kill -TERM "$server"
  tries=0
  while kill -0 "$server" && [ "$tries" -lt 40 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -KILL "$server"
} 2>/dev/null &
watcher=$!
exec 4<&-
wait "$server" 2>/dev/null
status=$?
kill "$watcher" 2>/dev/null
[ -z "$container" ] || "$1" rm -f "$container" >/dev/null 2>&1
[ "$status" -le 128 ] || echo "ended by SIG$(kill -l "$status")" >&2
tail -n 20 "$log" >&2
[ -z "$folder" ] || rm -rf "$folder"
`;

/** A server process that ends with this process. */
export interface Supervised {
  /** Process id of the server (of the client that holds the container, with Docker). */
  pid: number;
  /** Resolves with the last lines of the log when the server has ended and the shell has cleaned up. */
  ended: Promise<string>;
  /** Lets this process exit although the server runs. */
  unref(): void;
  /** Ends the server and waits for that. May be called again, and after the server has ended. */
  close(): Promise<void>;
}

export interface SuperviseOptions {
  /** What the command reads from its standard input. */
  input: string;
  logFile: string;
  /** Folder to remove after the server ended. Default: none. */
  removeFolder?: string | undefined;
}

/** @throws when the supervising shell cannot be started */
export async function supervise(
  command: ServerCommand,
  { input, logFile, removeFolder = '' }: SuperviseOptions,
): Promise<Supervised> {
  const settings = [removeFolder, command.container ?? '', logFile];
  const script = ['-c', SUPERVISOR, 'piecework-redis', ...settings, command.file, ...command.args];
  const child = spawn('/bin/sh', script, {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    // Some versions do not start with a locale that is not installed.
    env: { ...process.env, ...command.env, LC_ALL: 'C' },
  });
  child.stdin.on('error', () => {});
  const config = child.stdio[3] as Writable;
  // A server that has not started reads nothing.
  config.on('error', () => {});
  // The server never closes its end, which would keep this process running.
  config.end(input, () => config.destroy());
  const ended = collectUntilClosed(child, child.stderr);
  ended.catch(() => {});
  const pid = await Promise.race([firstLine(child.stdout), ended]);

  return {
    pid: Number(pid),
    ended,
    unref() {
      child.unref();
      // On Bun the input is no socket, and does not keep this process running.
      for (const pipe of [child.stdin, child.stdout, child.stderr])
        (pipe as Partial<Socket>).unref?.();
    },
    async close() {
      child.ref();
      child.stdin.end();
      await ended;
    },
  };
}

function firstLine(stream: Readable): Promise<string> {
  return new Promise((resolve) => createInterface(stream).once('line', resolve));
}

function collectUntilClosed(child: ChildProcess, stream: Readable): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    child.once('error', reject);
    child.once('close', () => resolve(text));
  });
}
