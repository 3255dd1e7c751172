import { setTimeout as sleep } from 'node:timers/promises';
import { PieceworkError } from '@piecework/protocol';
import type { Taken } from '../contract/history.js';
import { delayedQueue } from './queues/delayed.js';
import { idQueue } from './queues/ids.js';
import { retryQueue } from './queues/retry.js';
import { schedulerQueue } from './queues/scheduler.js';
import { HOLD_MS, type Opened, type TakerTools } from './queues/tools.js';
import { enterRole, insist, onStop } from './role.js';

/*
 * Puts keys into the other queues, and takes and ends keys that it or another process has put. It may be killed at any
 * point: other processes then get what it had taken, and its successor puts other keys.
 */

const { argument, journal, report } = enterRole();
/** Time between two puts into each queue, in ms. */
const PACE_MS: Record<Taken, number> = { ids: 25, retry: 100, scheduler: 100, delayed: 100 };
let puts = true;
let over = false;

function toolsOf(queue: Taken): TakerTools {
  return {
    ...{ argument, queue },
    took: (key, atMs) => {
      const at = atMs === undefined ? {} : { atMs };
      journal.write({ did: 'take', queue, key, ...at, holdMs: HOLD_MS });
    },
    ends: (key) => journal.write({ does: 'end', queue, key }),
    ended: (key, counted) => journal.write({ did: 'end', queue, key, counted }),
    failed: (step, error, key) => {
      const code = error instanceof PieceworkError ? error.code : 'OTHER';
      const of = key === undefined ? {} : { key };
      journal.write({ failed: step, queue, ...of, code, message: String(error) });
    },
    isOver: () => over,
  };
}

async function serve(queue: Taken, open: (tools: TakerTools) => Promise<Opened>): Promise<void> {
  const tools = toolsOf(queue);
  const { put, take } = await insist(
    () => open(tools),
    (error) => tools.failed('take', error),
  );
  await Promise.all([putAll(queue, put, tools), take()]);
}

async function putAll(queue: Taken, put: Opened['put'], tools: TakerTools): Promise<void> {
  for (let n = 0; puts; n += 1) {
    const key = `${queue}-${argument.name}-${n}`;
    journal.write({ does: 'put', queue, key });
    for (;;) {
      const sinceNs = String(process.hrtime.bigint());
      try {
        const confirmedNs = await put(key, n);
        journal.write({ did: 'put', queue, key, sinceNs: confirmedNs ?? sinceNs });
        break;
      } catch (error) {
        tools.failed('put', error, key);
        // After a retryable error it is put again; otherwise it may be in the queue or not.
        if (!(error instanceof PieceworkError) || !error.retryable || over) break;
        await sleep(100);
      }
    }
    await sleep(PACE_MS[queue]);
  }
}

process.on('message', ({ task }: { task: string }) => {
  if (task === 'put no more') puts = false;
});
onStop(async () => {
  puts = false;
  over = true;
  // Lets calls end; the queues are empty by now.
  await sleep(100);
});
const served = Promise.all([
  serve('ids', idQueue),
  serve('retry', retryQueue),
  serve('scheduler', schedulerQueue),
  serve('delayed', delayedQueue),
]);
served.catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
report({ report: 'ready' });
