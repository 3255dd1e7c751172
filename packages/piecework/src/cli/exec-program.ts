import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';

/**
 * A program that a user named on the command line, run by the shell in a process group of its own:
 * a stop reaches all of the group, also the parts of a pipe, and Ctrl-C reaches none of it, because
 * the worker decides what a signal means. What it writes to standard error is kept, its end only.
 */

/** How much of standard error is kept, in characters: what an error may carry. */
const MAX_STDERR = 4_000;
/** From the polite signal to the hard one, in ms. */
const KILL_AFTER_MS = 5_000;

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

export class ExecProgram {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #stderr = '';
  #kill: NodeJS.Timeout | undefined;
  #over = false;
  /** Resolves with how it ended, '' for exit code 0, when also its output has been read. */
  readonly ended: Promise<string>;

  constructor(command: string, env: NodeJS.ProcessEnv) {
    this.#child = spawn('/bin/sh', ['-c', command], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env,
      detached: true,
    });
    // A program need not read what it is given.
    this.#child.stdin.on('error', () => {});
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-MAX_STDERR);
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(error.message));
      this.#child.once('close', (code, signal) => {
        this.#over = true;
        clearTimeout(this.#kill);
        if (signal) resolve(`ended by ${signal}`);
        else resolve(code === 0 ? '' : `exit code ${code}`);
      });
    });
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
