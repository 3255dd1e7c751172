import { type RetryItem, RetryQueue } from 'piecework';
import { HOLD_MS, LATER_MS, numberOf, type Opened, type TakerTools } from './tools.js';

/** One item in this many fails once. */
const LATER = 7;

/** A retry queue: items come at their time, some of them again after a failure. */
export async function retryQueue(tools: TakerTools): Promise<Opened> {
  const { argument, took, ends, ended, failed, isOver } = tools;
  const { redis, queue: name } = argument;
  const queue = new RetryQueue<string>({ redis, name: `${name}-retry` });
  async function settle(item: RetryItem<string>): Promise<void> {
    const { key, payload, numFailures } = item;
    took(key, item.leasedUntil - HOLD_MS);
    const n = numberOf(key);
    if (payload !== key) failed('take', new Error(`${key} came with ${payload}`), key);
    ends(key);
    if (n % LATER === 0 && numFailures === 0) await item.retry({ delayMs: 100 });
    else ended(key, await item.done());
  }

  return {
    async put(key, n) {
      await queue.put(key, { key, delayMs: n % 3 === 0 ? (n * 37) % LATER_MS : 0 });
      return undefined;
    },
    async take() {
      while (!isOver()) {
        try {
          for await (const item of queue.items({ demand: 4, leaseMs: HOLD_MS }))
            void settle(item).catch((error: unknown) => failed('end', error, item.key));
        } catch (error) {
          failed('take', error);
        }
      }
    },
  };
}
