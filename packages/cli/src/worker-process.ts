import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { CrashCause } from '@piecework/protocol';
import type { WorkerHealth } from '@piecework/worker';
import { causeOf, type EndedWorker } from './worker-end.js';

/**
 * One worker process, a child of this one: it runs `piecework worker`. In a process group of its own, so
 * that Ctrl-C reaches the parent, which decides. It drains and ends when its channel closes, so that it
 * does not outlive a parent that died.
 *
 * A process whose handler blocks its event loop for ever answers nothing and hears no signal but SIGKILL.
 * It gets that when it has been silent for longer than a handler may block it; its work goes to others at once. One that
 * says for so long that it can do nothing, as its slots are stuck, is told to drain, and ends too.
 */

const PROGRAM = fileURLToPath(new URL('../bin/piecework.js', import.meta.url));

/** A process that does not answer for so long is held up by its handlers, or worse. */
export const ANSWER_MS = 5_000;
/** How long the output of a process may still come after its end, in ms. */
const OUTPUT_MS = 1_000;
/** How long a process may need beyond its drain to give back its work and to end its programs, in ms. */
const CLOSE_MS = 15_000;

/** What a worker process tells its parent. */
export interface WorkerNews {
  /** It waits for work. */
  readonly ready?: EndedWorker & {
    /** How long its handlers may block it, in ms. */
    readonly blockMs: number;
    readonly drainMs: number;
  };
  /** Why it could not start, in words. `wrong`: code of what is wrong with the command, not with this process. */
  readonly failed?: { readonly why: string; readonly wrong?: string };
  /** A handler has succeeded or failed, and the server took the outcome. */
  readonly settled?: true;
  /** A program has written what `--exec-output none` discards. */
  readonly discarded?: true;
  readonly health?: WorkerHealth;
}

/** How a worker process ended. */
export interface ProcessEnd {
  readonly pid: number | undefined;
  /** In words, with the process as their subject. */
  readonly why: string;
  readonly cause: CrashCause;
  /** What is wrong with the command, and would be with each process. */
  readonly wrong?: { readonly why: string; readonly code: string };
  /** Who it was in Redis; undefined when it was never ready. */
  readonly worker: EndedWorker | undefined;
}

export interface ProcessOptions {
  readonly redis: string;
  /** Arguments of `piecework worker`. */
  readonly args: readonly string[];
  readonly onLine?: ((line: string) => void) | undefined;
  readonly onErrorLine?: ((line: string) => void) | undefined;
  readonly onReady: () => void;
  /** Told at most once a second, and of the first at once. */
  readonly onSettled: () => void;
  readonly onDiscarded?: (() => void) | undefined;
  readonly onEnd: (end: ProcessEnd) => void;
}

export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #options: ProcessOptions;
  #worker: WorkerNews['ready'];
  #failed: WorkerNews['failed'];
  #watch: NodeJS.Timeout | undefined;
  /** For how long nothing was heard of it, in ms. Counted in ticks: a parent that stood still heard nothing. */
  #silentMs = 0;
  #limitMs = Number.POSITIVE_INFINITY;
  #blockedMs = 0;
  /** For how long it has said that it can do nothing, in ms, and why. */
  #unfitMs = 0;
  #unfit = '';
  #stopping = false;
  /** Resolves when it has ended and its output was read. */
  readonly ended: Promise<void>;

  constructor(options: ProcessOptions) {
    const { redis, args, onLine, onErrorLine, onEnd } = options;
    this.#options = options;
    // The URL may hold a password, which a command line would show to everybody.
    const child = spawn(process.execPath, [PROGRAM, 'worker', ...args], {
      stdio: ['ignore', onLine ? 'pipe' : 'ignore', onErrorLine ? 'pipe' : 'inherit', 'ipc'],
      env: { ...process.env, REDIS_URL: redis },
      detached: true,
    });
    this.#child = child;
    if (onLine && child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
    if (onErrorLine && child.stderr)
      createInterface({ input: child.stderr }).on('line', onErrorLine);
    child.on('message', (news: WorkerNews) => this.#hear(news));
    this.ended = new Promise((resolve) => {
      // Not before the output was read to its end; but a program that a handler left behind may
      // hold it open for ever.
      child.once('close', () => resolve());
      child.once('exit', (code, signal) => {
        clearInterval(this.#watch);
        setTimeout(() => {
          child.stdout?.destroy();
          child.stderr?.destroy();
        }, OUTPUT_MS).unref();
        onEnd(this.#endOf(code, signal));
      });
      child.once('error', (error) => {
        if (child.pid !== undefined) return;
        this.#failed = { why: error.message };
        onEnd(this.#endOf(null, null));
        resolve();
      });
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isReady(): boolean {
    return this.#worker !== undefined;
  }

  /** Lets it drain. */
  stop(): void {
    this.#stopping = true;
    this.#silentMs = 0;
    if (this.#worker) this.#limitMs = Math.min(this.#limitMs, this.#worker.drainMs + CLOSE_MS);
    this.#child.kill('SIGTERM');
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** What it says of itself, or why it says nothing. */
  health(): Promise<WorkerHealth | 'silent' | 'ended'> {
    const child = this.#child;
    return new Promise((resolve) => {
      const answer = (verdict: WorkerHealth | 'silent' | 'ended') => {
        clearTimeout(late);
        child.off('message', listener);
        child.off('exit', ended);
        resolve(verdict);
      };
      const listener = ({ health }: WorkerNews) => {
        if (health) answer(health);
      };
      const ended = () => answer('ended');
      const late = setTimeout(() => answer('silent'), ANSWER_MS);
      child.on('message', listener);
      child.once('exit', ended);
      child.send('health', (error) => {
        if (error) ended();
      });
    });
  }

  #hear({ ready, failed, settled, discarded, health }: WorkerNews): void {
    this.#silentMs = 0;
    if (health) this.#unfit = health.live ? '' : health.why.join('; ');
    if (failed) this.#failed = failed;
    if (settled) this.#options.onSettled();
    if (discarded) this.#options.onDiscarded?.();
    if (!ready) return;
    this.#worker = ready;
    this.#limitMs = Math.max(ANSWER_MS, ready.blockMs);
    const everyMs = Math.min(ANSWER_MS, this.#limitMs / 10);
    this.#watch = setInterval(() => this.#look(everyMs), everyMs).unref();
    this.#options.onReady();
  }

  #look(sinceMs: number): void {
    this.#silentMs += sinceMs;
    // Any answer will do. One that cannot be asked is about to end.
    if (this.#child.connected) this.#child.send('health', () => {});
    if (this.#silentMs > this.#limitMs) {
      this.#blockedMs = Math.round(this.#silentMs);
      this.kill();
      return;
    }
    if (this.#stopping) return;
    this.#unfitMs = this.#unfit === '' ? 0 : this.#unfitMs + sinceMs;
    if (this.#unfitMs > this.#limitMs) this.stop();
  }

  #endOf(code: number | null, signal: string | null): ProcessEnd {
    const { pid } = this.#child;
    const blockedMs = this.#blockedMs;
    const about = { pid, worker: this.#worker };
    if (blockedMs > 0) {
      const why = `answered nothing for ${Math.round(blockedMs / 1_000)} s and was killed: a handler blocks its event loop`;
      return { ...about, why, cause: { blockedMs } };
    }
    const cause = causeOf(code, signal);
    if (this.#failed) {
      const { why, wrong: code } = this.#failed;
      const wrong = code === undefined ? {} : { wrong: { why, code } };
      return { ...about, why: `could not start: ${why}`, cause, ...wrong };
    }
    if (this.#unfitMs > this.#limitMs) {
      const seconds = Math.round(this.#unfitMs / 1_000);
      return {
        ...about,
        why: `could do nothing for ${seconds} s and was stopped: ${this.#unfit}`,
        cause,
      };
    }
    const when = this.isReady ? '' : ' before it was ready';
    return { ...about, why: `ended by itself${when} (${signal ?? `exit code ${code}`})`, cause };
  }
}
