import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Snapshot } from '@piecework/metrics/fleet';
import { afterReading, type CrashCause } from '@piecework/protocol/contract';
import type { WorkerHealth } from '@piecework/worker';
import { causeOf, type EndedWorker } from './worker-end.js';

/**
 * One worker process, a child of this process, that runs `piecework worker`. It has a process group of its own, so that
 * Ctrl-C reaches only the parent. It drains and ends when its channel closes, so it does not outlive its parent.
 *
 * A process whose handler blocks the event loop answers nothing and reacts to no signal but SIGKILL. It is killed when
 * it has been silent for longer than a handler may block it; other workers get its work at once. A process that reports
 * for as long that it cannot work, because handlers that do not stop occupy all slots, is closed.
 */

const PROGRAM = fileURLToPath(new URL('../../bin/piecework.js', import.meta.url));

/** A process that does not answer for this time is blocked by a handler, or worse. */
export const ANSWER_MS = 5_000;
/** How long a scrape waits for the metrics of a process; then it takes those that came last. In ms. */
const METRICS_MS = 1_000;
/** Set in the environment of a process whose parent serves its metrics. */
export const MEASURES = 'PIECEWORK_MEASURES';
/** How long output of a process is still read after its end, in ms. */
const OUTPUT_MS = 1_000;
/** How long a process may take, after it has drained, to return its work and to end its programs, in ms. */
const CLOSE_MS = 15_000;

/** A message of a worker process to its parent. */
export interface WorkerNews {
  /** The worker waits for work. */
  readonly ready?: EndedWorker & {
    /** How long its handlers may block it, in ms. */
    readonly blockMs: number;
    readonly drainMs: number;
  };
  /** Why it could not start, or ends. `wrong`: the error code, when every process would fail. */
  readonly failed?: { readonly why: string; readonly wrong?: string };
  /** A sub-request has succeeded or failed, and Redis has stored the outcome. */
  readonly settled?: true;
  /** `--exec-output none` has discarded output of a program. */
  readonly discarded?: true;
  readonly health?: WorkerHealth;
  readonly metrics?: Snapshot;
}

/** How a worker process ended. */
export interface ProcessEnd {
  readonly pid: number | undefined;
  /** In words that continue "worker process 4711 …". */
  readonly why: string;
  readonly cause: CrashCause;
  /** Set when the command, the password or a right is wrong, so that every process would fail. */
  readonly wrong?: { readonly why: string; readonly code: string };
  /** Its worker in Redis; undefined when it was never ready. */
  readonly worker: EndedWorker | undefined;
}

export interface ProcessOptions {
  readonly redis: string;
  /** Arguments of `piecework worker`. */
  readonly args: readonly string[];
  readonly onLine?: ((line: string) => void) | undefined;
  readonly onErrorLine?: ((line: string) => void) | undefined;
  readonly onReady: () => void;
  /** Called when a sub-request was settled: at once for the first, then at most once a second. */
  readonly onSettled: () => void;
  readonly onDiscarded?: (() => void) | undefined;
  readonly onEnd: (end: ProcessEnd) => void;
  /** Receives what the process measures: when it is asked, now and then, and before its end. */
  readonly onMetrics?: ((metrics: Snapshot) => void) | undefined;
}

/** Calls when all messages of a process that has ended were received: its end may be noticed before them. */
function afterMessages(child: ChildProcess, then: () => void): void {
  if (!child.connected) {
    then();
    return;
  }
  let called = false;
  const once = () => {
    clearTimeout(late);
    if (!called) then();
    called = true;
  };
  const late = afterReading(OUTPUT_MS, once);
  child.once('disconnect', once);
}

export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #options: ProcessOptions;
  #worker: WorkerNews['ready'];
  #failed: WorkerNews['failed'];
  #watch: NodeJS.Timeout | undefined;
  /**
   * For how long the process has sent nothing, in ms. Counted in checks, which stop while this process is suspended.
   */
  #silentMs = 0;
  #limitMs = Number.POSITIVE_INFINITY;
  #blockedMs = 0;
  /** For how long it has reported that it cannot work, in ms, and why. */
  #unfitMs = 0;
  #unfit = '';
  #closing = false;
  /** Resolves when the process has ended and its output was read. */
  readonly ended: Promise<void>;

  constructor(options: ProcessOptions) {
    const { redis, args, onLine, onErrorLine, onEnd } = options;
    this.#options = options;
    // In the environment: the URL may contain a password, which others could read in a command line.
    const child = spawn(process.execPath, [PROGRAM, 'worker', ...args], {
      stdio: ['ignore', onLine ? 'pipe' : 'ignore', onErrorLine ? 'pipe' : 'inherit', 'ipc'],
      env: {
        ...process.env,
        REDIS_URL: redis,
        ...(options.onMetrics ? { [MEASURES]: '1' } : {}),
      },
      detached: true,
    });
    this.#child = child;
    if (onLine && child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
    if (onErrorLine && child.stderr)
      createInterface({ input: child.stderr }).on('line', onErrorLine);
    child.on('message', (news: WorkerNews) => this.#receive(news));
    this.ended = new Promise((resolve) => {
      // After the output was read to its end. A program that a handler left behind may keep it
      // open for ever.
      child.once('close', () => resolve());
      child.once('exit', (code, signal) => {
        clearInterval(this.#watch);
        afterReading(OUTPUT_MS, () => {
          child.stdout?.destroy();
          child.stderr?.destroy();
        }).unref();
        afterMessages(child, () => onEnd(this.#endOf(code, signal)));
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

  /** Lets the process drain and end. `ended` resolves after that. */
  close(): void {
    this.#closing = true;
    this.#silentMs = 0;
    if (this.#worker) this.#limitMs = Math.min(this.#limitMs, this.#worker.drainMs + CLOSE_MS);
    this.#child.kill('SIGTERM');
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** The health that the process reports, or why it reports none. */
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

  /** Has the process say what it measures. Resolves when it has, or does not in time. */
  askMetrics(): Promise<void> {
    const child = this.#child;
    return new Promise((resolve) => {
      const answer = () => {
        clearTimeout(late);
        child.off('message', listener);
        child.off('exit', answer);
        resolve();
      };
      const listener = ({ metrics }: WorkerNews) => {
        if (metrics) answer();
      };
      const late = setTimeout(answer, METRICS_MS);
      child.on('message', listener);
      child.once('exit', answer);
      child.send('metrics', (error) => {
        if (error) answer();
      });
    });
  }

  #receive({ ready, failed, settled, discarded, health, metrics }: WorkerNews): void {
    this.#silentMs = 0;
    if (metrics) this.#options.onMetrics?.(metrics);
    if (health) this.#unfit = health.live ? '' : health.why.join('; ');
    if (failed) this.#failed = failed;
    if (settled) this.#options.onSettled();
    if (discarded) this.#options.onDiscarded?.();
    if (!ready) return;
    this.#worker = ready;
    this.#limitMs = Math.max(ANSWER_MS, ready.blockMs);
    const everyMs = Math.min(ANSWER_MS, this.#limitMs / 10);
    this.#watch = setInterval(() => this.#check(everyMs), everyMs).unref();
    this.#options.onReady();
  }

  #check(sinceMs: number): void {
    this.#silentMs += sinceMs;
    // Any answer is a sign of life. A process without a channel is about to end.
    if (this.#child.connected) {
      this.#child.send('health', () => {});
      // So that little is lost when it is killed.
      if (this.#options.onMetrics) this.#child.send('metrics', () => {});
    }
    if (this.#silentMs > this.#limitMs) {
      this.#blockedMs = Math.round(this.#silentMs);
      this.kill();
      return;
    }
    if (this.#closing) return;
    this.#unfitMs = this.#unfit === '' ? 0 : this.#unfitMs + sinceMs;
    if (this.#unfitMs > this.#limitMs) this.close();
  }

  #endOf(code: number | null, signal: string | null): ProcessEnd {
    const { pid } = this.#child;
    const blockedMs = this.#blockedMs;
    const about = { pid, worker: this.#worker };
    if (blockedMs > 0) {
      const why = `did not answer for ${Math.round(blockedMs / 1_000)} s and was killed: a handler blocks its event loop`;
      return { ...about, why, cause: { blockedMs } };
    }
    const cause = causeOf(code, signal);
    if (this.#failed) {
      const { why, wrong: code } = this.#failed;
      const wrong = code === undefined ? {} : { wrong: { why, code } };
      return {
        ...about,
        why: `${this.#worker ? 'ended' : 'could not start'}: ${why}`,
        cause,
        ...wrong,
      };
    }
    if (this.#unfitMs > this.#limitMs) {
      const seconds = Math.round(this.#unfitMs / 1_000);
      return {
        ...about,
        why: `could not work for ${seconds} s and was closed: ${this.#unfit}`,
        cause,
      };
    }
    const when = this.isReady ? '' : ' before it was ready';
    return { ...about, why: `ended by itself${when} (${signal ?? `exit code ${code}`})`, cause };
  }
}
