import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FromWorker, ToWorker, WorkerOrder, WorkerReport } from './worker-report.js';

const PROGRAM = fileURLToPath(new URL('./worker-program.js', import.meta.url));

type Told = Extract<FromWorker, { kind: 'started' }>;

/** A worker in a process of its own, seen from the one that measures. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;
  readonly #told: Told[] = [];
  #ended = false;

  private constructor(order: WorkerOrder) {
    this.#child = fork(PROGRAM, [JSON.stringify(order)]);
    this.#child.on('message', (message: FromWorker) => {
      if (message.kind === 'started') this.#told.push(message);
    });
    this.#exit = once(this.#child, 'exit').then(() => {
      this.#ended = true;
    });
  }

  /** @throws Error when the process ends before it waits for work */
  static async start(order: WorkerOrder): Promise<WorkerProcess> {
    const worker = new WorkerProcess(order);
    await worker.#next('ready');
    return worker;
  }

  /** What it did since the last report. */
  async report(): Promise<WorkerReport> {
    const next = this.#next('report');
    this.#say('report');
    return (await next).report;
  }

  /** The next so many runs that it tells of, as soon as they have begun. */
  async started(count: number): Promise<Told[]> {
    while (this.#told.length < count) await this.#next('started');
    return this.#told.splice(0, count);
  }

  /** Ends it as a power cut would. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }

  async close(): Promise<void> {
    if (!this.#ended) this.#say('close');
    await this.#exit;
  }

  #say(word: ToWorker): void {
    this.#child.send(word);
  }

  /** The next message of that kind. */
  async #next<Kind extends FromWorker['kind']>(
    kind: Kind,
  ): Promise<Extract<FromWorker, { kind: Kind }>> {
    return new Promise((resolve, reject) => {
      const over = () => reject(new Error('a worker process ended early; see above'));
      const heard = (message: unknown) => {
        if ((message as FromWorker).kind !== kind) return;
        this.#child.off('message', heard).off('exit', over);
        resolve(message as Extract<FromWorker, { kind: Kind }>);
      };
      this.#child.on('message', heard).once('exit', over);
    });
  }
}
