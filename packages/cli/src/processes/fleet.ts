import type { FleetMetrics } from '@piecework/metrics/fleet';
import { type CrashCause, onAbort, PieceworkError } from '@piecework/protocol/contract';
import type { WorkerHealth } from '@piecework/worker';
import type { MetricsPage } from 'piecework/health';
import { programsEnded, WORKER_PID } from '../exec/programs-ended.js';
import type { noteEnd as NoteEnd } from './note-end.js';
import { RestartBudget } from './restart-budget.js';
import type { EndedWorker } from './worker-end.js';
import { ANSWER_MS, type ProcessEnd, WorkerProcess } from './worker-process.js';

/**
 * Worker processes on this machine, children of this process. A process that ends is started again after a delay,
 * which grows, until the budget of restarts is spent (restart-budget.ts). Each sub-request that it ran counts a crash.
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
   * The number of restarts, for each process, after which the fleet gives up. It is counted from zero again when a
   * handler has finished a sub-request. An end before the process was ready counts as ten. @default 100
   */
  readonly maxRestarts?: number | undefined;
  /** Further flags of `piecework worker`, such as `['--concurrency', '50']`. */
  readonly flags?: readonly string[] | undefined;
  /**
   * Called with each line that a handler writes to standard output. Processes that share one output would break each
   * other's long lines. @default such lines are dropped
   */
  readonly onLine?: ((line: string) => void) | undefined;
  /**
   * Called with each line on standard error, such as log lines.
   * @default the processes share the standard error of this process
   */
  readonly onErrorLine?: ((line: string) => void) | undefined;
  /** Called when `--exec-output none` has discarded output of programs. */
  readonly onDiscarded?: (() => void) | undefined;
  /** Called for each process that has ended and is started again. @default nothing is called */
  readonly onRestart?: ((restart: WorkerRestart) => void) | undefined;
  /** Whether the processes measure what they do, for `fleet.metrics`. @default false */
  readonly metrics?: boolean | undefined;
  /** Ends the wait for the processes to be ready: `start` resolves, and the caller closes the fleet. */
  readonly signal?: AbortSignal | undefined;
}

/** A worker process that has ended without being asked to, and how: see CrashCause. */
export interface WorkerRestart extends CrashCause {
  readonly pid: number | undefined;
  /** In words: "worker process 4711 ended by itself (exit code 3)". */
  readonly why: string;
  /** The delay until another process is started in its place, in ms. */
  readonly delayMs: number;
  /** What it ran, as 'request:index', at most ten; empty also when Redis could not be reached. */
  readonly ran: readonly string[];
}

/** A restart in words, for people. */
export function restartText({ why, ran }: WorkerRestart): string {
  const had = ran.length > 0 ? `; it ran ${ran.join(', ')}` : '';
  return `${why}; another one is started${had}`;
}

/** The health of all worker processes. A process that is being started again is live and not ready. */
export interface FleetHealth {
  /** Whether at least one process is live: the fleet replaces the others. */
  readonly live: boolean;
  readonly ready: boolean;
  readonly why: readonly string[];
  readonly workers: readonly WorkerHealth[];
}

/** The place of one process of the fleet, which is refilled when the process has ended. */
interface Place {
  readonly index: number;
  process: WorkerProcess | undefined;
  restart: NodeJS.Timeout | undefined;
  /** Why no process takes work at this place; '' if one does. */
  why: string;
}

export class WorkerFleet implements AsyncDisposable {
  readonly #options: WorkerFleetOptions;
  readonly #budget: RestartBudget;
  readonly #places: Place[];
  /** What `close` waits for: processes, and notes about their ends. */
  readonly #open = new Set<Promise<void>>();
  #starting = true;
  #closing = false;
  #asking: Promise<FleetHealth> | undefined;
  readonly #measured: FleetMetrics | undefined;
  #onLost: ((error: PieceworkError) => void) | undefined;
  /** Rejects (FLEET) when the fleet gives up: too many processes have ended and finished nothing. */
  readonly lost: Promise<never>;

  private constructor(options: WorkerFleetOptions, measured: FleetMetrics | undefined) {
    this.#measured = measured;
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
    // A caller that does not await it is not ended by an unhandled rejection.
    this.lost.catch(() => {});
  }

  /**
   * Starts the processes; resolves when all of them wait for work.
   * @throws PieceworkError FLEET when one ends before that · HANDLER, HANDLER_THREW when its handler cannot be loaded
   */
  static async start(options: WorkerFleetOptions): Promise<WorkerFleet> {
    // Loaded on demand: few fleets are measured.
    const { FleetMetrics } = options.metrics ? await import('@piecework/metrics/fleet') : {};
    const fleet = new WorkerFleet(options, FleetMetrics && new FleetMetrics());
    const { signal } = options;
    let unlisten = () => {};
    try {
      const ready = fleet.#places.map(
        (place) => new Promise<void>((resolve) => fleet.#begin(place, resolve)),
      );
      const givenUp = new Promise<void>((resolve) => {
        if (signal) unlisten = onAbort(signal, resolve);
      });
      await Promise.race([Promise.all(ready), fleet.lost, givenUp]);
      fleet.#starting = false;
    } catch (error) {
      await fleet.close();
      throw error;
    } finally {
      unlisten();
    }
    return fleet;
  }

  /** Process ids of the worker processes that run. */
  get pids(): number[] {
    return this.#processes.flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  /** Asks every process for its health. A process that does not answer within five seconds is not live. */
  health(): Promise<FleetHealth> {
    // Calls at the same time share one answer.
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** The metrics of all processes as those of one, for `serveHealth`; undefined unless the fleet was started with it. */
  get metrics(): MetricsPage | undefined {
    const measured = this.#measured;
    if (!measured) return undefined;
    const text = async () => {
      const ready = this.#processes.filter((process) => process.isReady);
      await Promise.all(ready.map((process) => process.askMetrics()));
      return measured.text();
    };
    return { contentType: measured.contentType, text };
  }

  async #ask(): Promise<FleetHealth> {
    const answers = await Promise.all(this.#places.map(askHealth));
    const workers = answers.flatMap(({ health }) => (health ? [health] : []));
    const why = answers.flatMap(({ words }) => words);
    const ready = workers.length === answers.length && workers.every((one) => one.ready);
    return { live: answers.some(({ live }) => live), ready, why, workers };
  }

  /** Lets all processes drain, and waits for their end. May be called again at any time. */
  async close(): Promise<void> {
    this.#startNoMore();
    for (const process of this.#processes) process.close();
    await Promise.all(this.#open);
  }

  /** Kills all processes. Others take over what they ran. */
  kill(): void {
    this.#startNoMore();
    for (const process of this.#processes) process.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #processes(): WorkerProcess[] {
    return this.#places.flatMap(({ process }) => (process ? [process] : []));
  }

  #startNoMore(): void {
    this.#closing = true;
    for (const { restart } of this.#places) clearTimeout(restart);
  }

  #begin(place: Place, onReady: () => void): void {
    const { redis, queue, handler, flags = [], onLine, onErrorLine, onDiscarded } = this.#options;
    const handled = handler === undefined ? [] : ['--handler', handler];
    const measured = this.#measured;
    const process: WorkerProcess = new WorkerProcess({
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
      ...(measured ? { onMetrics: (said) => measured.keep(process.pid ?? 0, said) } : {}),
      onEnd: (end) => {
        place.process = undefined;
        measured?.ended(end.pid ?? 0);
        if (!this.#closing) this.#replace(place, end);
      },
    });
    place.process = process;
    this.#awaitAtClose(process.ended);
  }

  #replace(place: Place, { pid, why, cause, worker, wrong }: ProcessEnd): void {
    const { onRestart } = this.#options;
    const noted = worker ? this.#note(worker, pid, cause) : Promise.resolve([]);
    this.#awaitAtClose(noted.then(() => {}));
    const said = `worker process ${pid} ${why}`;
    const delayMs = this.#budget.spend(place.index, worker !== undefined);
    // All processes have the same URL, so another one would have the same password and the same rights.
    if (wrong && (this.#starting || wrong.code === 'PASSWORD' || wrong.code === 'NO_RIGHT')) {
      this.#startNoMore();
      this.#onLost?.(new PieceworkError(wrong.why, wrong));
      return;
    }
    // The first start of a process is not repeated: most likely the command is wrong.
    // cure: a worker process that ended is started again
    if (delayMs === undefined || (this.#starting && !worker)) {
      this.#startNoMore();
      const { ends } = this.#budget;
      const before = ends > 1 ? `worker processes ended ${ends} times and finished nothing; ` : '';
      const last = before === '' ? '' : 'the last one: ';
      this.#onLost?.(new PieceworkError(`${before}${last}${said}`, { code: 'FLEET' }));
      return;
    }
    place.why = said;
    place.restart = setTimeout(() => this.#begin(place, () => {}), delayMs);
    if (onRestart)
      this.#awaitAtClose(
        noted.then((ran) => onRestart({ pid, why: said, delayMs, ran, ...cause })),
      );
  }

  async #note(
    worker: EndedWorker,
    pid: number | undefined,
    cause: CrashCause,
  ): Promise<readonly string[]> {
    const { redis, handler } = this.#options;
    const noteEnd = await loadNoteEnd();
    if (!noteEnd) return [];
    if (handler !== undefined) {
      // cure: the exit of a process is recorded at once
      return await noteEnd(redis, worker, cause, true);
    }
    // The guard kills its programs in a moment. Until then, others must not run their sub-requests.
    const ran = await noteEnd(redis, worker, cause, false);
    if (await programsEnded(WORKER_PID, String(pid))) await noteEnd(redis, worker, cause, true);
    return ran;
  }

  #awaitAtClose(work: Promise<void>): void {
    this.#open.add(work);
    void work.finally(() => this.#open.delete(work));
  }
}

/**
 * Loaded at the first end, because it brings the client of Redis along: an idle parent takes little memory without it.
 * Undefined if it cannot be loaded, as while an update replaces the files: the leases then end by themselves.
 */
async function loadNoteEnd(): Promise<typeof NoteEnd | undefined> {
  return (await import('./note-end.js').catch(() => undefined))?.noteEnd;
}

interface Answer {
  readonly live: boolean;
  readonly health?: WorkerHealth;
  /** What is wrong with it, if anything. */
  readonly words: readonly string[];
}

async function askHealth({ process, why }: Place): Promise<Answer> {
  if (!process?.isReady) {
    const starts = process
      ? `process ${process.pid} starts`
      : 'a process has ended, and none replaces it';
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
