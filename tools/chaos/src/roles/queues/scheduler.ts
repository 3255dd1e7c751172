import { type DueItem, Scheduler } from 'piecework';
import { HOLD_MS, LATER_MS, LEFT_LYING, numberOf, type Opened, type TakerTools } from './tools.js';

/** A scheduler: objects are taken when they are due, and removed. */
export async function schedulerQueue(tools: TakerTools): Promise<Opened> {
  const { argument, took, ends, ended, failed, isOver } = tools;
  const { redis, queue: name } = argument;
  const scheduler = new Scheduler<string>({ redis, name: `${name}-scheduler` });
  const lying = new Set<string>();

  async function remove({ object, lockedUntil }: DueItem<string>): Promise<void> {
    took(object, lockedUntil - HOLD_MS);
    if (numberOf(object) % LEFT_LYING === 0 && !lying.has(object)) {
      lying.add(object);
      return;
    }
    ends(object);
    ended(object, await scheduler.remove(object));
  }

  return {
    async put(key, n) {
      await scheduler.enqueue(key, Date.now() + ((n * 37) % LATER_MS));
      return undefined;
    },
    async take() {
      while (!isOver()) {
        try {
          for await (const due of scheduler.due({ demand: 4, lockMs: HOLD_MS }))
            void remove(due).catch((error: unknown) => failed('end', error, due.object));
        } catch (error) {
          failed('take', error);
        }
      }
    },
  };
}
