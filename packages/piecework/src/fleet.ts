import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { PieceworkError } from '@piecework/protocol';

/**
 * Worker processes on this machine, children of this one: each runs `piecework worker`. They say
 * through a channel when they are ready, and drain and end when that channel closes, so that none
 * outlives a parent that died. In process groups of their own: Ctrl-C reaches the parent, which
 * decides.
 */

const PROGRAM = fileURLToPath(new URL('../bin/piecework.js', import.meta.url));

export interface WorkerFleetOptions {
  /** Redis URL. */
  readonly redis: string;
  readonly queue: string;
  /** File whose default export is the handler. */
  readonly handler: string;
  /** How many processes. @default 1 */
  readonly processes?: number;
  /** Further flags of `piecework worker`, such as `['--concurrency', '50']`. */
  readonly flags?: readonly string[];
  /**
   * Told of each line that a handler writes to standard output. Line by line, because processes
   * that share one output break each other's long lines. @default such lines are dropped
   */
  readonly onLine?: (line: string) => void;
}

interface Member {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
}

export class WorkerFleet implements AsyncDisposable {
  readonly #members: Member[] = [];
  #stopping = false;
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
    try {
      const ready = Array.from({ length: count }, () => fleet.#spawn(options));
      await Promise.race([Promise.all(ready), fleet.lost]);
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  /** Process ids of the workers that run. */
  get pids(): number[] {
    return this.#members.flatMap(({ child }) =>
      child.pid && child.exitCode === null ? [child.pid] : [],
    );
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

  #spawn({ redis, queue, handler, flags = [], onLine }: WorkerFleetOptions): Promise<void> {
    // The URL may hold a password, which a command line would show to everybody.
    const child = spawn(
      process.execPath,
      [PROGRAM, 'worker', '--queue', queue, '--handler', handler, ...flags],
      {
        stdio: ['ignore', onLine ? 'pipe' : 'ignore', 'inherit', 'ipc'],
        env: { ...process.env, REDIS_URL: redis },
        detached: true,
      },
    );
    if (onLine && child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
    const ended = new Promise<void>((resolve) => {
      // Not before the output was read to its end.
      child.once('close', () => resolve());
      child.once('exit', (code, signal) => {
        if (this.#stopping) return;
        const why = `worker process ${child.pid} ended by itself (${signal ?? `exit code ${code}`})`;
        this.#onLost?.(new PieceworkError(why, { code: 'FLEET' }));
      });
      child.once('error', () => resolve());
    });
    this.#members.push({ child, ended });
    return new Promise((resolve) => child.once('message', () => resolve()));
  }
}
