import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

/**
 * The guard kills the process groups of programs whose worker was killed and so cannot do it itself. It is a shell that
 * reads from a pipe which groups there are. The pipe closes when the worker ends, for whatever reason: SIGKILL, the
 * second Ctrl-C, out of memory. Then the guard kills the groups that are left.
 *
 * It has a session of its own, so that neither Ctrl-C nor a signal to the worker's group ends it. The end of a
 * container or of a systemd unit kills the guard, but also the programs.
 */

const SCRIPT = `
trap '' HUP INT TERM
groups=' '
while read -r what group; do
  case $what in
    +) groups="$groups$group " ;;
    -) groups="\${groups%% $group *} \${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
`;

const groups = new Set<number>();
let guard: ChildProcess | undefined;
let starting: Promise<void> | undefined;

/** Starts the guard unless it runs. @throws Error when it cannot be started */
export async function guarded(): Promise<void> {
  if (guard) return;
  starting ??= start().finally(() => {
    starting = undefined;
  });
  await starting;
}

/** From now on, the guard kills the group when this process ends. */
export function guardGroup(group: number): void {
  groups.add(group);
  say(`+ ${group}`);
}

/** The group has ended: its number may soon belong to other processes. */
export function releaseGroup(group: number): void {
  if (groups.delete(group)) say(`- ${group}`);
}

async function start(): Promise<void> {
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'piecework-exec-guard'], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
    detached: true,
  });
  child.stdin?.on('error', () => {});
  await once(child, 'spawn');
  // The guard does not keep this process running. On Bun the pipe is no socket, and does not do so either.
  child.unref();
  (child.stdin as Partial<Socket>).unref?.();
  child.once('exit', () => {
    guard = undefined;
  });
  guard = child;
  for (const group of groups) say(`+ ${group}`);
}

function say(line: string): void {
  guard?.stdin?.write(`${line}\n`);
}
