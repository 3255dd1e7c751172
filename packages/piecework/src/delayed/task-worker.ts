import { type Client, checkOption, checkOptions, type OptionTable } from '@piecework/protocol';
import { SlotPool, Worker, type WorkerHealth } from '@piecework/worker';
import { type TaskWorkerOptions, taskWorkerOptions } from './delayed-task-options.js';

/**
 * Runs the tasks of several queues in this process, with one set of slots: a Worker for each queue, each
 * with a blocking connection of its own, as the queues may be on different servers of a cluster. A free
 * slot takes from the first queue that has a task; each queue is paused, parked, leased and repaired as
 * ever. It moves what is due in its queues, too.
 */
export class TaskWorker implements AsyncDisposable {
  /** One for each queue, in their order: for their events, and their health. */
  readonly workers: readonly Worker[];

  /** @throws InvalidOptionError */
  constructor(redis: Client, options: TaskWorkerOptions) {
    const { queues, handlers, ...rest } = checkOptions<
      TaskWorkerOptions & { readonly concurrency: number }
    >(taskWorkerOptions, options);
    for (const [name, value] of Object.entries({ queues, handlers }))
      checkOption(name, value, taskWorkerOptions[name] as OptionTable[string]);
    const slots = new SlotPool(rest.concurrency);
    const served = Object.entries(handlers).map(([task, run]) => ({ task, run }));
    // Each of them listens to the client that they share; Node would take many for a leak.
    if (redis.getMaxListeners() > 0) redis.setMaxListeners(redis.getMaxListeners() + queues.length);
    this.workers = queues.map(
      (queue) => new Worker({ redis, queue, handlers: served, ...rest }, { slots }),
    );
  }

  /** How many tasks run now. */
  get running(): number {
    return this.workers.reduce((sum, { running }) => sum + running, 0);
  }

  /** Whether each queue is served, and if not, why. Does no I/O. */
  health(): WorkerHealth[] {
    return this.workers.map((worker) => worker.health());
  }

  /**
   * Begins to take tasks, from the first queue first. May be called again after an error.
   * @throws ServerError · ConnectionError · ClosedError
   */
  async start(): Promise<this> {
    for (const worker of this.workers) await worker.start();
    return this;
  }

  /** Takes no more, waits up to `timeoutMs` for what runs, and gives the rest back. @default timeoutMs 30000 */
  async close(options: { timeoutMs?: number } = {}): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.close(options)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
