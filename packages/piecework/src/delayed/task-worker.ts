import { type Client, checkOption, checkOptions, type OptionTable } from '@piecework/protocol';
import { SharingWorker, SlotPool, type Worker, type WorkerHealth } from '@piecework/worker';
import {
  type TaskFunction,
  type TaskWorkerOptions,
  taskWorkerOptions,
} from './delayed-task-options.js';

/**
 * Runs the tasks of several queues in this process, with one set of slots. Each queue has a Worker with a blocking
 * connection of its own, as the queues may be on different servers of a cluster. A free slot takes from the
 * first queue that has a task. Pauses, leases and repairs work as with a Worker. It also moves what is due in its
 * queues.
 */
export class TaskWorker implements AsyncDisposable {
  /** One for each queue, in their order: for their events, and their health. */
  readonly workers: readonly Worker[];

  /** @internal */
  constructor(redis: Client, options: TaskWorkerOptions) {
    const { queues, handlers, ...rest } = checkOptions<
      TaskWorkerOptions & { readonly concurrency: number }
    >(taskWorkerOptions, options);
    for (const [name, value] of Object.entries({ queues, handlers }))
      checkOption(name, value, taskWorkerOptions[name] as OptionTable[string]);
    const slots = new SlotPool(rest.concurrency);
    const served = Object.entries(handlers as Record<string, TaskFunction>).map(([task, run]) => {
      return { task, run };
    });
    // Each Worker adds listeners to the shared client; Node would warn of a leak.
    if (redis.getMaxListeners() > 0) redis.setMaxListeners(redis.getMaxListeners() + queues.length);
    this.workers = queues.map(
      (queue) => new SharingWorker({ redis, queue, handlers: served, ...rest }, { slots }),
    );
  }

  /** How many tasks are running. */
  get running(): number {
    return this.workers.reduce((sum, { running }) => sum + running, 0);
  }

  /** Whether each queue is served, and if not, why; in the order of the queues. Does no I/O. */
  health(): WorkerHealth[] {
    return this.workers.map((worker) => worker.health());
  }

  /**
   * Begins to take tasks. A start that fails closes it, for all its queues: to try again, make a new one.
   * @throws ServerError · ConnectionError · ClosedError
   */
  async start(): Promise<this> {
    try {
      for (const worker of this.workers) await worker.start();
    } catch (error) {
      await this.close({ timeoutMs: 0 });
      throw error;
    }
    return this;
  }

  /**
   * Takes no more tasks, waits up to `timeoutMs` for running ones, and gives the rest back. May be called twice.
   * @default timeoutMs 30000
   */
  async close(options: { timeoutMs?: number } = {}): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.close(options)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
