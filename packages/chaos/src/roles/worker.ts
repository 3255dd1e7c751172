import { setTimeout as sleep } from 'node:timers/promises';
import { type HandlerContext, Worker } from '@piecework/worker';
import type { Payload } from '../plan.js';
import { enterRole, insist, onStop } from './role.js';

/*
 * A worker. Its handler writes down when it begins and how it ended; in between it sleeps. Half of
 * the handlers do not listen to their signal: those of a zombie succeed although it lost its lease.
 */

const { argument, journal, report } = enterRole();
const { redis, queue, concurrency, leaseMs } = argument;

async function handle(payload: Payload, context: HandlerContext): Promise<number> {
  const { requestId: request, index, attempt, crashes, signal } = context;
  const { item, fails, workMs, deaf } = payload;
  journal.write({ does: 'run', request, index, attempt, crashes, item });
  const ended = (how: 'succeeded' | 'failed' | 'aborted') =>
    journal.write({ did: 'run', request, index, ended: how });
  signal.addEventListener('abort', () => journal.write({ did: 'abort', request, index }), {
    once: true,
  });
  try {
    await sleep(workMs, undefined, deaf ? {} : { signal });
  } catch (error) {
    ended('aborted');
    throw error;
  }
  ended(fails ? 'failed' : 'succeeded');
  if (fails) throw new Error('this item fails');
  return item;
}

const worker = new Worker({ redis, queue, concurrency, leaseMs, handler: handle });
onStop(() => worker.close({ timeoutMs: 5_000 }));
// One that was born while Redis is away tries until it is back.
await insist(
  () => worker.start(),
  () => {},
);
journal.write({ did: 'start', boot: worker.id, leaseMs });
report({ report: 'ready', boot: worker.id });
