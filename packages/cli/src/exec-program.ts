import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { backoff, pause } from '@piecework/protocol';
import pTimeout from 'p-timeout';
import { guarded, guardGroup, releaseGroup } from './exec-guard.js';
import type { LiveStderr } from './live-stderr.js';

/**
 * A program that a user named on the command line, run by the shell in a process group of its own:
 * a stop reaches all of the group, also the parts of a pipe, and Ctrl-C reaches none of it, because
 * the worker decides what a signal means. What it writes to standard error is kept, its end only.
 *
 * The shell's end is the program's. What it left behind in its group is then ended as well, and a
 * child that has its pipes and went into a group of its own holds nobody up for longer than a moment. The
 * end of this process, however it comes, ends the group too (exec-guard.ts).
 */

/** How much of standard error is kept, in characters: what an error may carry. */
const MAX_STDERR = 4_000;
/** From the polite signal to the hard one, in ms. */
const KILL_AFTER_MS = 5_000;
/** How long output may still come after the end of the shell, in ms. */
const OUTPUT_MS = 500;
/** What passes: this process, or the machine, has too much open or running. */
const PASSING = /EMFILE|ENFILE|EAGAIN|ENOMEM/;
/** How long a start is tried again then, in ms. */
const START_MS = 30_000;

/** A program that failed: its exit code or signal, and what it wrote to standard error. */
export class ExitError extends Error {
  override readonly name = 'ExitError';

  constructor(how: string, stderr: string) {
    const lines = stderr.trim().split('\n');
    const last = lines.at(-1) ?? '';
    super(last === '' ? how : `${how}: ${last}`);
    // Where this error was made tells nobody anything; what the program said does.
    this.stack = stderr.trim() === '' ? this.message : stderr.trim();
  }
}

/** An error about what a program did, without the frames of this code, which tell nobody anything. */
export function programError(message: string, name = 'Error'): Error {
  const error = new Error(message);
  error.name = name;
  error.stack = `${name}: ${message}`;
  return error;
}

/** Names the worker process that started a program, for whoever wants to know whether it has ended. */
export const WORKER_PID = 'PIECEWORK_WORKER_PID';

/** The environment of programs: ours, but not where Redis is, which may name its password. */
export function programEnvironment(): NodeJS.ProcessEnv {
  const { REDIS_URL: _, ...env } = process.env;
  return { ...env, [WORKER_PID]: String(process.pid) };
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Those that have not ended. */
const programs = new Set<ExecProgram>();

export class ExecProgram {
  readonly #child: Child;
  #stderr = '';
  #kill: NodeJS.Timeout | undefined;
  #over = false;
  /** Resolves with how it ended, '' for exit code 0, when also its output has been read. */
  readonly ended: Promise<string>;

  private constructor(child: Child, live: LiveStderr | undefined) {
    this.#child = child;
    programs.add(this);
    // A program need not read what it is given.
    child.stdin.on('error', () => {});
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-MAX_STDERR);
      live?.add(text);
    });
    child.stderr.once('close', () => live?.end());
    this.ended = this.#end();
  }

  /**
   * Starts `command`; tries again for a while when the machine cannot start anything right now.
   * @throws Error when it cannot be started · the signal's reason
   */
  static async start(
    command: string,
    env: NodeJS.ProcessEnv,
    signal: AbortSignal,
    live?: LiveStderr,
  ): Promise<ExecProgram> {
    const waits = backoff(50, 2_000);
    const deadline = performance.now() + START_MS;
    for (;;) {
      signal.throwIfAborted();
      try {
        await guarded();
        return new ExecProgram(await spawned(command, env), live);
      } catch (error) {
        const { message, code } = error as NodeJS.ErrnoException;
        if (code === 'E2BIG')
          throw programError('the items are too long for arguments: leave {} out, or take fewer');
        if (!PASSING.test(message) || performance.now() > deadline) throw programError(message);
        await pause(waits.next(), signal);
      }
    }
  }

  /** Stops all that run, and waits for their end. */
  static async stopAll(): Promise<void> {
    const all = [...programs];
    for (const program of all) program.stop();
    await Promise.all(all.map(({ ended }) => ended));
  }

  get stdin(): Writable {
    return this.#child.stdin;
  }

  get stdout(): Readable {
    return this.#child.stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Writes no faster than the program reads. */
  async write(text: string): Promise<void> {
    if (this.stdin.destroyed || this.stdin.write(text)) return;
    await Promise.race([once(this.stdin, 'drain').catch(() => {}), this.ended]);
  }

  /** Asks the whole group to end, and ends it when it has not after five seconds. */
  stop(): void {
    if (this.#over) return;
    this.#signal('SIGTERM');
    this.#kill ??= setTimeout(() => this.#signal('SIGKILL'), KILL_AFTER_MS);
  }

  async #end(): Promise<string> {
    const child = this.#child;
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    await pTimeout(closed, { milliseconds: OUTPUT_MS, message: false });
    // Whatever of the group is left is nobody's any more; so are pipes that others still hold.
    this.#signal('SIGKILL');
    if (child.pid) releaseGroup(child.pid);
    programs.delete(this);
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
    clearTimeout(this.#kill);
    this.#over = true;
    if (signal) return `ended by ${signal}`;
    return code === 0 ? '' : `exit code ${code}`;
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (!pid) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // The group has ended.
    }
  }
}

/** The command begins when the guard knows of its group, and not at all when the worker ends before that. */
const WHEN_GUARDED = 'read -r _ <&3 || exit 1; exec /bin/sh -c "$1" 3<&-';

/** A shell that runs. When there is no room for pipes, Node gives a child without any. */
async function spawned(command: string, env: NodeJS.ProcessEnv): Promise<Child> {
  const child: ChildProcess = spawn('/bin/sh', ['-c', WHEN_GUARDED, 'sh', command], {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    env,
    detached: true,
  });
  if (child.pid) guardGroup(child.pid);
  await once(child, 'spawn');
  const go = child.stdio[3] as Writable;
  go.on('error', () => {});
  go.end('\n');
  return child as Child;
}
