import { readFileSync, readlinkSync } from 'node:fs';

/*
 * npx, `npm exec` and `npm run` start a command by a shell. They pass SIGTERM on to this shell only: shell and npm end,
 * and the command would go on without anybody who can stop it. So the command notices that they have gone, and stops as
 * after SIGTERM.
 *
 * Only a command that npm itself has started does so: npm gives its shell the text of the command in the environment. A
 * command that a shell, nohup, systemd, cron or a container starts goes on when its parent ends, and so does one
 * that the text of npm detaches.
 */

/** How often a command checks whether npm is still there, in ms. */
const CHECK_MS = 1_000;

const VARIABLE = 'npm_lifecycle_script';
/** Not the folder or the program of somebody else that has the word in its name. */
const NAMES_US = /(?<![\w.-])piecework(?![\w.-])/;
/** `&`, but not `&&`, `2>&1` or `&>file`; and the programs that detach a command. */
const DETACHES = /(?<![&>])&(?![&>])|\b(nohup|setsid|disown|daemonize)\b/;

/** Whether a command of npm, as a shell reads it, runs this program and waits for its end. */
export const waitsForUs = (text: string): boolean => NAMES_US.test(text) && !DETACHES.test(text);

/**
 * Calls `onGone` once when the npm that started this command has ended.
 * @returns ends the watch
 */
export function watchNpm(onGone: () => void): () => void {
  if (!waitsForUs(process.env[VARIABLE] ?? '')) return () => {};
  // Programs that this command starts were not started by npm.
  delete process.env[VARIABLE];
  const atStart = launchers();
  const timer = setInterval(() => {
    if (launchers() === atStart) return;
    clearInterval(timer);
    onGone();
  }, CHECK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Process id of npm, or of its shell and npm. SIGKILL ends npm alone: the shell then has another parent. Without /proc
 * only the parent is known.
 */
function launchers(): string {
  const { ppid } = process;
  try {
    if (!/(busybox|sh)$/.test(readlinkSync(`/proc/${ppid}/exe`))) return `${ppid}`;
    const [, npm] = /^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${ppid}/stat`, 'utf8')) ?? [];
    return `${ppid} ${npm}`;
  } catch {
    return `${ppid}`;
  }
}
