import { RetryQueue, type RetryTask } from 'piecework';
import { HOLD_MS, LATER_MS, numberOf, type Opened, type TakerTools } from './tools.js';

/** One in so many fails once. */
const LATER = 7;

/** Tasks that come at their time, some of them again after a failure. */
export async function retryQueue(tools: TakerTools): Promise<Opened> {
  const { argument, took, ends, ended, failed, isOver } = tools;
  const { redis, queue: name } = argument;
  const queue = new RetryQueue<string>({ redis, name: `${name}-retry` });
  async function settle(task: RetryTask<string>): Promise<void> {
    const { key, payload, numFailures } = task;
    took(key, task.leasedUntil - HOLD_MS);
    const n = numberOf(key);
    if (payload !== key) failed('take', new Error(`${key} came with ${payload}`), key);
    ends(key);
    if (n % LATER === 0 && numFailures === 0) await task.retry({ delayMs: 100 });
    else ended(key, await task.done());
  }

  return {
    async put(key, n) {
      await queue.put(key, { key, delayMs: n % 3 === 0 ? (n * 37) % LATER_MS : 0 });
      return undefined;
    },
    async take() {
      while (!isOver()) {
        try {
          for await (const task of queue.tasks({ demand: 4, leaseMs: HOLD_MS }))
            void settle(task).catch((error: unknown) => failed('end', error, task.key));
        } catch (error) {
          failed('take', error);
        }
      }
    },
  };
}
