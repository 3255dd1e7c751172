import { setTimeout as sleep } from 'node:timers/promises';
import { IdQueue } from 'piecework';
import { HOLD_MS, LEFT_LYING, numberOf, type Opened, type TakerTools } from './tools.js';

/** Number of items at once, and longest work: some are taken whenever the server loses writes. */
const PULLERS = 4;
const LONGEST_WORK_MS = 100;

/** An id queue: items are pulled, or resumed if they timed out, and done. */
export async function idQueue(tools: TakerTools): Promise<Opened> {
  const { argument, took, ends, ended, failed, isOver } = tools;
  const { redis, queue: name } = argument;
  const queue = await IdQueue.join(`${name}-ids`, { redis, timeoutMs: HOLD_MS });
  const lying = new Set<string>();

  async function takeOne(): Promise<void> {
    const pulled = await queue.pull();
    const item = pulled.state === 'timed-out' ? await queue.resume(pulled.key) : pulled;
    if (item.state !== 'ready') return sleep(20);
    const { id, key } = item;
    took(id, item.stamp);
    if (numberOf(id) % LEFT_LYING === 0 && !lying.has(id)) {
      lying.add(id);
      return;
    }
    await sleep((numberOf(id) * 13) % LONGEST_WORK_MS);
    ends(id);
    ended(id, await queue.done(key));
  }

  return {
    async put(key) {
      await queue.add(key);
      return undefined;
    },
    async take() {
      const takeAll = async () => {
        while (!isOver()) {
          try {
            await takeOne();
          } catch (error) {
            failed('take', error);
            await sleep(100);
          }
        }
      };
      await Promise.all(Array.from({ length: PULLERS }, takeAll));
      await queue.close();
    },
  };
}
