import { DelayedTasks } from 'piecework';
import { nowNs } from '../role.js';
import { HOLD_MS, LATER_MS, type Opened, type TakerTools } from './tools.js';

/** Delayed tasks: submitted with or without a delay, run by the worker of any taker. */
export async function delayedQueue(tools: TakerTools): Promise<Opened> {
  const { argument, took, ends, ended } = tools;
  const { redis, queue: name } = argument;
  const queue = `${name}-delayed`;
  const tasks = new DelayedTasks({ redis });
  const worker = tasks.worker({
    queues: [queue],
    ...{ concurrency: 4, leaseMs: HOLD_MS },
    handlers: {
      take: ([key]: [string]) => {
        took(key);
        ends(key);
      },
    },
  });
  // The server has answered; no worker is told whether it counted.
  for (const each of worker.workers) each.on('settled', ({ requestId }) => ended(requestId, true));
  await worker.start();
  return {
    async put(key, n) {
      const delayMs = n % 2 === 0 ? (n * 37) % LATER_MS : 0;
      // A task is not to blame for the kill of its process, and nobody reads its outcome.
      const kept = { maxCrashes: 1_000, retentionMs: 1_000 };
      await tasks.executeLater(queue, 'take', [key], { id: key, delayMs, ...kept });
      const sinceNs = nowNs();
      // A task that has ended may be removed by now.
      const isThere = tasks.task(queue, key).status();
      return isThere.then(() => sinceNs).catch(() => undefined);
    },
    take: () => new Promise<void>(() => {}),
  };
}
