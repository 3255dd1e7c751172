import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

/**
 * Ends the process groups of programs whose worker was killed, which cannot do it itself. It is a shell
 * that reads from a pipe which groups there are. The end of that pipe is the end of the worker, whatever
 * ended it: SIGKILL, the second Ctrl-C, out of memory. It then kills the groups that are left.
 *
 * It has a session of its own, so that neither Ctrl-C nor what is sent to the worker's group ends it. Who
 * kills it as well, as the end of a container or of a systemd unit does, kills the programs too.
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

/** Resolves when the guard runs. @throws Error when it cannot be started */
export async function guarded(): Promise<void> {
  if (guard) return;
  starting ??= start().finally(() => {
    starting = undefined;
  });
  await starting;
}

/** From here on, the group is killed when this process ends. */
export function guardGroup(group: number): void {
  groups.add(group);
  say(`+ ${group}`);
}

/** The group has ended: its number may soon be somebody else's. */
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
  // It is no reason to stay.
  child.unref();
  (child.stdin as Socket).unref();
  child.once('exit', () => {
    guard = undefined;
  });
  guard = child;
  for (const group of groups) say(`+ ${group}`);
}

function say(line: string): void {
  guard?.stdin?.write(`${line}\n`);
}
