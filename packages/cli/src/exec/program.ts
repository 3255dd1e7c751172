import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { backoff, nextTurn, pause } from '@piecework/protocol/contract';
import pTimeout from 'p-timeout';
import { guarded, guardGroup, releaseGroup } from './guard.js';
import type { LiveStderr } from './live-stderr.js';
import { programError } from './program-error.js';
import { WORKER_PID } from './programs-ended.js';

/**
 * A program of `--exec`, run by the shell in a process group of its own: `close` reaches the whole group, also the
 * parts of a pipe, and Ctrl-C reaches none of it, because the worker decides what a signal means. The end of what it
 * writes to standard error is kept.
 *
 * The program ends when the shell ends. Other processes of its group are then killed. A process that left the group
 * and keeps the pipes open delays the end only for a moment. When this process ends, for whatever reason, the group is
 * killed as well (guard.ts).
 */

/** How much of standard error is kept, in characters: what an error may carry. */
const MAX_STDERR = 4_000;
/** The time between SIGTERM and SIGKILL, in ms. */
const KILL_AFTER_MS = 5_000;
/** How long output is still read after the end of the shell, in ms. */
const OUTPUT_MS = 500;
/** Codes of errors that pass: this process, or the machine, has too many files open or processes running. */
const PASSING = /EMFILE|ENFILE|EAGAIN|ENOMEM/;
/** How long a start is then tried again, in ms. */
const START_MS = 30_000;

/** A program that failed: its exit code or signal, and what it wrote to standard error. */
export class ExitError extends Error {
  override readonly name = 'ExitError';

  constructor(how: string, stderr: string) {
    const lines = stderr.trim().split('\n');
    const last = lines.at(-1) ?? '';
    super(last === '' ? how : `${how}: ${last}`);
    // What the program wrote is more useful than the place in our code.
    this.stack = stderr.trim() === '' ? this.message : stderr.trim();
  }
}

/** The environment of programs: ours without REDIS_URL, which may contain a password. */
export function programEnvironment(): NodeJS.ProcessEnv {
  const { REDIS_URL: _, ...env } = process.env;
  return { ...env, [WORKER_PID]: String(process.pid) };
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** The programs that have not ended. */
const programs = new Set<ExecProgram>();

export class ExecProgram {
  readonly #child: Child;
  #stderr = '';
  #kill: NodeJS.Timeout | undefined;
  #ended = false;
  /** Resolves when the program has ended and its output was read: with how it ended, '' for exit code 0. */
  readonly ended: Promise<string>;

  private constructor(child: Child, live: LiveStderr | undefined) {
    this.#child = child;
    programs.add(this);
    // A program need not read its standard input.
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

  /** Closes all programs. */
  static async closeAll(): Promise<void> {
    const all = [...programs];
    await Promise.all(all.map((program) => program.close()));
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

  /** Ends the whole group: by SIGTERM, and five seconds later by SIGKILL. Resolves when the program has ended. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#signal('SIGTERM');
    this.#kill ??= setTimeout(() => this.#signal('SIGKILL'), KILL_AFTER_MS);
    await this.ended;
  }

  async #end(): Promise<string> {
    const child = this.#child;
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    await pTimeout(closed, { milliseconds: OUTPUT_MS, message: false });
    // What the program wrote may still be unread: on a busy machine, Node can tell that a process has ended before it
    // reads the output. Between timers and immediates it reads all pipes.
    // cure: output is read before its pipe is closed
    await nextTurn();
    // Nobody waits for other processes of the group, or for pipes that others keep open.
    this.#signal('SIGKILL');
    if (child.pid) releaseGroup(child.pid);
    programs.delete(this);
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
    clearTimeout(this.#kill);
    this.#ended = true;
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

/** The command begins when the guard knows its group, and not at all when the worker ends before that. */
const WHEN_GUARDED = 'read -r _ <&3 || exit 1; exec /bin/sh -c "$1" 3<&-';

/** Starts the shell. `once` throws its error: without room for pipes, Node gives a child that has none. */
async function spawned(command: string, env: NodeJS.ProcessEnv): Promise<Child> {
  const child: ChildProcess = spawn('/bin/sh', ['-c', WHEN_GUARDED, 'sh', command], {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    env,
    detached: true,
  });
  // cure: programs end with their worker
  if (child.pid) guardGroup(child.pid);
  await once(child, 'spawn');
  const go = child.stdio[3] as Writable;
  go.on('error', () => {});
  go.end('\n');
  return child as Child;
}
