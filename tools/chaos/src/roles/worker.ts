import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { UnrecoverableError } from '@piecework/protocol';
import { type HandlerContext, Worker } from '@piecework/worker';
import { changesLimit, type Payload, planOf } from '../contract/plan.js';
import { healedBy } from './control.js';
import { enterRole, insist, onStop } from './role.js';

/*
 * A worker. Its handler writes down when it starts and how it ends; in between it sleeps. Half of the handlers ignore
 * their signal: in a zombie they succeed although it has lost its lease.
 */

const { argument, journal, report } = enterRole();
const { redis, queue, shards, concurrency, leaseMs, seed, journals } = argument;
/** Sub-requests for which this process has called `holdRequest` once. */
const held = new Set<string>();
/** For requests whose limit changes: when the run of each unsettled sub-request ended. */
const unsettled = new Map<string, bigint>();
const watched = new Map<string, boolean>();

function isWatched(request: string): boolean {
  let known = watched.get(request);
  if (known === undefined) {
    known = changesLimit(planOf(seed, Number(request.split('-r')[1])));
    watched.set(request, known);
  }
  return known;
}

async function handle(payload: Payload, context: HandlerContext): Promise<number> {
  const { requestId: request, index, attempt, crashes, signal } = context;
  const { item, fate, holdMs, workMs, deaf } = payload;
  journal.write({ does: 'run', request, index, attempt, crashes, item });
  const ended = (how: 'succeeded' | 'failed' | 'aborted' | 'held') => {
    if (isWatched(request)) unsettled.set(`${request} ${index}`, process.hrtime.bigint());
    journal.write({ did: 'run', request, index, ended: how });
  };
  signal.addEventListener('abort', () => journal.write({ did: 'abort', request, index }), {
    once: true,
  });
  try {
    await sleep(workMs, undefined, deaf ? {} : { signal });
  } catch (error) {
    ended('aborted');
    throw error;
  }
  const key = `${request} ${index}`;
  if (holdMs > 0 && !held.has(key)) {
    held.add(key);
    const back = context.holdRequest(holdMs);
    ended('held');
    throw back;
  }
  const fails =
    fate !== 'succeeds' &&
    (fate !== 'fails first' || attempt === 1) &&
    !existsSync(healedBy(journals, request));
  ended(fails ? 'failed' : 'succeeded');
  if (fails && fate === 'fails for good') throw new UnrecoverableError('this item fails for good');
  if (fails) throw new Error('this item fails');
  return item;
}

function newWorker(): Worker {
  const made = new Worker({ redis, queue, shards, concurrency, leaseMs, handler: handle });
  made.on('settled', ({ requestId: request, index }) => {
    const endedNs = unsettled.get(`${request} ${index}`);
    if (endedNs === undefined) return;
    unsettled.delete(`${request} ${index}`);
    journal.write({ did: 'settle', request, index, endedNs: String(endedNs) });
  });
  return made;
}

let worker = newWorker();
onStop(() => worker.close({ timeoutMs: 5_000 }));
const beatMs = leaseMs / 20;
let lastBeatMs = performance.now();
setInterval(() => {
  const sinceMs = performance.now() - lastBeatMs;
  lastBeatMs += sinceMs;
  // It may have been awake for one beat of that time.
  if (sinceMs > leaseMs / 2) journal.write({ did: 'stand still', forMs: sinceMs - beatMs });
}, beatMs).unref();
// If it is started while Redis is away, it tries until Redis is back. A start that fails closes its worker.
await insist(
  () => worker.start(),
  ({ retryable }) => {
    if (retryable) worker = newWorker();
  },
);
journal.write({ did: 'start', boot: worker.id, leaseMs });
report({ report: 'ready', boot: worker.id });
