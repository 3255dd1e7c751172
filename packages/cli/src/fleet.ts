import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onAbort, PieceworkError } from '@piecework/protocol';
import type { WorkerHealth } from '@piecework/worker';
import { causeOf, type EndedWorker, noteEnd } from './worker-end.js';

/**
 * Worker processes on this machine, children of this one: each runs `piecework worker`. They say
 * through a channel when they are ready, and drain and end when that channel closes, so that none
 * outlives a parent that died. In process groups of their own: Ctrl-C reaches the parent, which
 * decides.
 */

const PROGRAM = fileURLToPath(new URL('../bin/piecework.js', import.meta.url));

export interface WorkerFleetOptions {
  /** Redis URL; of a cluster, those of some nodes with commas between them. */
  readonly redis: string;
  readonly queue: string;
  /** File whose default export is the handler. Or name a program in `flags`, by `--exec`. */
  readonly handler?: string | undefined;
  /** How many processes. @default 1 */
  readonly processes?: number;
  /** Further flags of `piecework worker`, such as `['--concurrency', '50']`. */
  readonly flags?: readonly string[];
  /**
   * Told of each line that a handler writes to standard output. Line by line, because processes
   * that share one output break each other's long lines. @default such lines are dropped
   */
  readonly onLine?: (line: string) => void;
  /**
   * Told of each line on standard error, such as those of their logs.
   * @default they share the standard error of this process
   */
  readonly onErrorLine?: (line: string) => void;
  /** Ends the start: the processes are stopped as soon as they can be, and none is waited for. */
  readonly signal?: AbortSignal;
}

/** The health of all worker processes together. */
export interface FleetHealth {
  /** Whether all of them are. */
  readonly live: boolean;
  readonly ready: boolean;
  readonly why: readonly string[];
  readonly workers: readonly WorkerHealth[];
}

/** A process that does not answer for so long is held up by its handlers, or worse. */
const ANSWER_MS = 5_000;
/** How long the output of a process may still come after its end, in ms. */
const OUTPUT_MS = 1_000;

interface Member {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
}

export class WorkerFleet implements AsyncDisposable {
  readonly #members: Member[] = [];
  #stopping = false;
  #asking: Promise<FleetHealth> | undefined;
  #onLost: ((error: PieceworkError) => void) | undefined;
  /** Rejects when a worker process ends by itself. */
  readonly lost: Promise<never>;

  private constructor() {
    this.lost = new Promise((_, reject) => {
      this.#onLost = reject;
    });
    // Whoever does not look at it is not told by a crash.
    this.lost.catch(() => {});
  }

  /**
   * Starts the processes; resolves when all of them wait for work.
   * @throws PieceworkError FLEET when one ends before that
   */
  static async start(options: WorkerFleetOptions): Promise<WorkerFleet> {
    const fleet = new WorkerFleet();
    const count = options.processes ?? 1;
    const { signal } = options;
    let stop = () => {};
    try {
      const ready = Array.from({ length: count }, () => fleet.#spawn(options));
      const givenUp = new Promise<void>((resolve) => {
        if (signal) stop = onAbort(signal, resolve);
      });
      await Promise.race([Promise.all(ready), fleet.lost, givenUp]);
    } catch (error) {
      await fleet.stop();
      throw error;
    } finally {
      stop();
    }
    return fleet;
  }

  /** Process ids of the workers that run. */
  get pids(): number[] {
    return this.#members.flatMap(({ child }) =>
      child.pid && child.exitCode === null ? [child.pid] : [],
    );
  }

  /** Asks every process how it is; one that does not answer within five seconds is not live. */
  health(): Promise<FleetHealth> {
    // Whoever asks while the question is out shares the answer.
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<FleetHealth> {
    const answers = await Promise.all(this.#members.map(({ child }) => askHealth(child)));
    const workers = answers.filter((answer) => typeof answer === 'object');
    const why = answers.flatMap((answer, i) => {
      if (typeof answer === 'string') return [answer];
      return answer.why.map((text) => `process ${this.#members[i]?.child.pid}: ${text}`);
    });
    const all = (holds: (worker: WorkerHealth) => boolean) =>
      workers.length > 0 && workers.length === answers.length && workers.every(holds);
    return { live: all(({ live }) => live), ready: all(({ ready }) => ready), why, workers };
  }

  /** Lets all processes drain and waits for their end. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const { child } of this.#members) child.kill('SIGTERM');
    await Promise.all(this.#members.map(({ ended }) => ended));
  }

  /** Ends all processes at once, unfinished. */
  kill(): void {
    this.#stopping = true;
    for (const { child } of this.#members) child.kill('SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #spawn(options: WorkerFleetOptions): Promise<void> {
    const { redis, queue, handler, flags = [], onLine, onErrorLine } = options;
    // The URL may hold a password, which a command line would show to everybody.
    const child = spawn(
      process.execPath,
      [
        PROGRAM,
        ...['worker', '--queue', queue],
        ...(handler === undefined ? [] : ['--handler', handler]),
        ...flags,
      ],
      {
        stdio: ['ignore', onLine ? 'pipe' : 'ignore', onErrorLine ? 'pipe' : 'inherit', 'ipc'],
        env: { ...process.env, REDIS_URL: redis },
        detached: true,
      },
    );
    let worker: EndedWorker | undefined;
    let noted: Promise<void> | undefined;
    if (onLine && child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
    if (onErrorLine && child.stderr)
      createInterface({ input: child.stderr }).on('line', onErrorLine);
    const ended = new Promise<void>((resolve) => {
      // Not before the output was read to its end; but a program that a handler left behind may
      // hold it open for ever.
      child.once('close', () => resolve(noted));
      child.once('exit', (code, signal) => {
        setTimeout(() => {
          child.stdout?.destroy();
          child.stderr?.destroy();
        }, OUTPUT_MS).unref();
        if (this.#stopping) return;
        // A program that a handler started may go on for a while.
        const dead = handler !== undefined;
        if (worker) noted = noteEnd(redis, worker, causeOf(code, signal), dead);
        const why = `worker process ${child.pid} ended by itself (${signal ?? `exit code ${code}`})`;
        this.#onLost?.(new PieceworkError(why, { code: 'FLEET' }));
      });
      child.once('error', () => resolve());
    });
    this.#members.push({ child, ended });
    return new Promise((resolve) => {
      child.on('message', (message) => {
        if (typeof message !== 'object' || message === null || !('ready' in message)) return;
        worker = message.ready as EndedWorker;
        resolve();
      });
    });
  }
}

/** Answers what the process says, or in words why it says nothing. */
function askHealth(child: ChildProcess): Promise<WorkerHealth | string> {
  return new Promise((resolve) => {
    const answer = (verdict: WorkerHealth | string) => {
      clearTimeout(late);
      child.off('message', listener);
      resolve(verdict);
    };
    const listener = (message: unknown) => {
      if (typeof message === 'object' && message !== null && 'health' in message)
        answer(message.health as WorkerHealth);
    };
    const late = setTimeout(
      () => answer(`process ${child.pid} has not answered for ${ANSWER_MS / 1_000} s`),
      ANSWER_MS,
    );
    child.on('message', listener);
    child.send('health', (error) => {
      if (error) answer(`process ${child.pid} has ended`);
    });
  });
}
