import { type CrashCause, onAbort, PieceworkError } from '@piecework/protocol';
import type { WorkerHealth } from '@piecework/worker';
import { WORKER_PID } from './exec-program.js';
import { programsEnded } from './programs-ended.js';
import { RestartBudget } from './restart-budget.js';
import { type EndedWorker, noteEnd } from './worker-end.js';
import { ANSWER_MS, type ProcessEnd, WorkerProcess } from './worker-process.js';

/**
 * Worker processes on this machine, children of this one. One that ends is started again, after a wait
 * that grows, until the budget of restarts is spent (restart-budget.ts); what it ran counts a crash.
 */

export interface WorkerFleetOptions {
  /** Redis URL; of a cluster, those of some nodes with commas between them. */
  readonly redis: string;
  readonly queue: string;
  /** File whose default export is the handler. Or name a program in `flags`, by `--exec`. */
  readonly handler?: string | undefined;
  /** How many processes. @default 1 */
  readonly processes?: number | undefined;
  /**
   * How often, for each process, one may be started again until the fleet gives up; counted anew when a
   * handler has finished something. An end before the process was ready counts as ten. @default 100
   */
  readonly maxRestarts?: number | undefined;
  /** Further flags of `piecework worker`, such as `['--concurrency', '50']`. */
  readonly flags?: readonly string[] | undefined;
  /**
   * Told of each line that a handler writes to standard output. Line by line, because processes
   * that share one output break each other's long lines. @default such lines are dropped
   */
  readonly onLine?: ((line: string) => void) | undefined;
  /**
   * Told of each line on standard error, such as those of their logs.
   * @default they share the standard error of this process
   */
  readonly onErrorLine?: ((line: string) => void) | undefined;
  /** Told when programs have written what `--exec-output none` discards. */
  readonly onDiscarded?: (() => void) | undefined;
  /** Told of each process that ended and is started again. @default nobody is told */
  readonly onRestart?: ((restart: WorkerRestart) => void) | undefined;
  /** Ends the start: the processes are stopped as soon as they can be, and none is waited for. */
  readonly signal?: AbortSignal | undefined;
}

/** A worker process that ended although nobody asked it to, and how: see CrashCause. */
export interface WorkerRestart extends CrashCause {
  readonly pid: number | undefined;
  /** In words: "worker process 4711 ended by itself (exit code 3)". */
  readonly why: string;
  /** In how many ms another is started in its place. */
  readonly delayMs: number;
  /** What it had, as 'request:index', ten at most; empty also when Redis could not be asked. */
  readonly ran: readonly string[];
}

/** A restart in words, for people. */
export function restartText({ why, ran }: WorkerRestart): string {
  const had = ran.length > 0 ? `; it ran ${ran.join(', ')}` : '';
  return `${why}; another one is started${had}`;
}

/** The health of all worker processes together. One that is being started again is live and not ready. */
export interface FleetHealth {
  /** Whether any of them is, or is being started: others are replaced by their parent. */
  readonly live: boolean;
  readonly ready: boolean;
  readonly why: readonly string[];
  readonly workers: readonly WorkerHealth[];
}

/** Where a process is, or will be again. */
interface Place {
  readonly index: number;
  process: WorkerProcess | undefined;
  restart: NodeJS.Timeout | undefined;
  /** Why there is no process that takes work. */
  why: string;
}

export class WorkerFleet implements AsyncDisposable {
  readonly #options: WorkerFleetOptions;
  readonly #budget: RestartBudget;
  readonly #places: Place[];
  /** What is to be over before a stop is: processes, and notes about their ends. */
  readonly #open = new Set<Promise<void>>();
  #starting = true;
  #stopping = false;
  #asking: Promise<FleetHealth> | undefined;
  #onLost: ((error: PieceworkError) => void) | undefined;
  /** Rejects (FLEET) when no process is started again: too many ended and finished nothing. */
  readonly lost: Promise<never>;

  private constructor(options: WorkerFleetOptions) {
    const { processes = 1, maxRestarts = 100 } = options;
    this.#options = options;
    this.#budget = new RestartBudget(processes, maxRestarts);
    this.#places = Array.from({ length: processes }, (_, index) => ({
      index,
      process: undefined,
      restart: undefined,
      why: '',
    }));
    this.lost = new Promise((_, reject) => {
      this.#onLost = reject;
    });
    // Whoever does not look at it is not told by a crash.
    this.lost.catch(() => {});
  }

  /**
   * Starts the processes; resolves when all of them wait for work.
   * @throws PieceworkError FLEET when one ends before that · HANDLER, HANDLER_THREW when its handler cannot be loaded
   */
  static async start(options: WorkerFleetOptions): Promise<WorkerFleet> {
    const fleet = new WorkerFleet(options);
    const { signal } = options;
    let stop = () => {};
    try {
      const ready = fleet.#places.map(
        (place) => new Promise<void>((resolve) => fleet.#begin(place, resolve)),
      );
      const givenUp = new Promise<void>((resolve) => {
        if (signal) stop = onAbort(signal, resolve);
      });
      await Promise.race([Promise.all(ready), fleet.lost, givenUp]);
      fleet.#starting = false;
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
    return this.#processes.flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
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
    const answers = await Promise.all(this.#places.map(askHealth));
    const workers = answers.flatMap(({ health }) => (health ? [health] : []));
    const why = answers.flatMap(({ words }) => words);
    const ready = workers.length === answers.length && workers.every((one) => one.ready);
    return { live: answers.some(({ live }) => live), ready, why, workers };
  }

  /** Lets all processes drain and waits for their end. */
  async stop(): Promise<void> {
    this.#end();
    for (const process of this.#processes) process.stop();
    await Promise.all(this.#open);
  }

  /** Ends all processes at once, unfinished. */
  kill(): void {
    this.#end();
    for (const process of this.#processes) process.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  get #processes(): WorkerProcess[] {
    return this.#places.flatMap(({ process }) => (process ? [process] : []));
  }

  #end(): void {
    this.#stopping = true;
    for (const { restart } of this.#places) clearTimeout(restart);
  }

  #begin(place: Place, onReady: () => void): void {
    const { redis, queue, handler, flags = [], onLine, onErrorLine, onDiscarded } = this.#options;
    const handled = handler === undefined ? [] : ['--handler', handler];
    const process = new WorkerProcess({
      redis,
      args: ['--queue', queue, ...handled, ...flags],
      onLine,
      onErrorLine,
      onDiscarded,
      onReady: () => {
        place.why = '';
        onReady();
      },
      onSettled: () => this.#budget.refill(place.index),
      onEnd: (end) => {
        place.process = undefined;
        if (!this.#stopping) this.#replace(place, end);
      },
    });
    place.process = process;
    this.#awaitAtStop(process.ended);
  }

  #replace(place: Place, { pid, why, cause, worker, wrong }: ProcessEnd): void {
    const { onRestart } = this.#options;
    const noted = worker ? this.#note(worker, pid, cause) : Promise.resolve([]);
    this.#awaitAtStop(noted.then(() => {}));
    const said = `worker process ${pid} ${why}`;
    const delayMs = this.#budget.spend(place.index, worker !== undefined);
    if (this.#starting && wrong) {
      this.#end();
      this.#onLost?.(new PieceworkError(wrong.why, wrong));
      return;
    }
    // The first start of a process is not tried again: what is wrong is most likely in the command.
    if (delayMs === undefined || (this.#starting && !worker)) {
      this.#end();
      const { ends } = this.#budget;
      const before = ends > 1 ? `worker processes ended ${ends} times and finished nothing; ` : '';
      const last = before === '' ? '' : 'the last one: ';
      this.#onLost?.(new PieceworkError(`${before}${last}${said}`, { code: 'FLEET' }));
      return;
    }
    place.why = said;
    place.restart = setTimeout(() => this.#begin(place, () => {}), delayMs);
    if (onRestart)
      this.#awaitAtStop(noted.then((ran) => onRestart({ pid, why: said, delayMs, ran, ...cause })));
  }

  async #note(
    worker: EndedWorker,
    pid: number | undefined,
    cause: CrashCause,
  ): Promise<readonly string[]> {
    const { redis, handler } = this.#options;
    if (handler !== undefined) return await noteEnd(redis, worker, cause, true);
    // The guard ends its programs in a moment. Until then others must not run what they had.
    const ran = await noteEnd(redis, worker, cause, false);
    if (await programsEnded(WORKER_PID, String(pid))) await noteEnd(redis, worker, cause, true);
    return ran;
  }

  #awaitAtStop(work: Promise<void>): void {
    this.#open.add(work);
    void work.finally(() => this.#open.delete(work));
  }
}

interface Answer {
  readonly live: boolean;
  readonly health?: WorkerHealth;
  /** What is amiss. */
  readonly words: readonly string[];
}

async function askHealth({ process, why }: Place): Promise<Answer> {
  if (!process?.isReady) {
    const starts = process ? `process ${process.pid} starts` : 'a process has ended, as was asked';
    return { live: true, words: [why === '' ? starts : `${why}; it is being replaced`] };
  }
  const verdict = await process.health();
  if (verdict === 'ended') return { live: true, words: [`process ${process.pid} has ended`] };
  if (verdict === 'silent')
    return {
      live: false,
      words: [`process ${process.pid} has not answered for ${ANSWER_MS / 1_000} s`],
    };
  const words = verdict.why.map((text) => `process ${process.pid}: ${text}`);
  return { live: verdict.live, health: verdict, words };
}
