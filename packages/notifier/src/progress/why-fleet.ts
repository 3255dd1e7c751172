import { isLateWorker, isSilentWorker, type RegisteredWorker } from '@piecework/protocol';
import type { Snapshot, WaitingFor } from './snapshot.js';
import { ago, n, slotsText } from './why-words.js';

/*
 * The workers that could run a request, as they last reported, for the sentence that says why it is not further
 * (why.ts): how many slots they have, and which of them take no work.
 */

/**
 * Workers with a sign of life: in a fleet of any size some worker ticks within this time. One that has missed the
 * renewal of a lease is not taken for live, even if it reported a moment before.
 */
export function aliveAt({
  readAt,
  silentWorkers,
  queue: { workers },
}: Snapshot): (worker: RegisteredWorker) => boolean {
  return (worker) =>
    !isSilentWorker(worker, workers.length, readAt) &&
    silentWorkers.every((silent) => silent.worker !== worker.id);
}

export const serves = ({ tasks }: RegisteredWorker, task: string): boolean =>
  tasks === '*' || tasks.includes(task);

/** Why no worker can begin with it, and what to do; undefined: one is there, though it may have no free slot. */
export function lackOfWorker(seen: Snapshot) {
  const { queue, readAt, task = '' } = seen;
  const advice = 'start one, as `new Worker` or `piecework worker`: it will run then';
  const { workers } = queue;
  if (workers.length === 0 && !seen.parked)
    return { why: 'its queue has no worker', waitingFor: 'worker', advice } as const;
  const able = workers.filter((worker) => serves(worker, task));
  const which = task ? `task ${task}` : 'requests without a task';
  if (able.length === 0)
    return {
      why: `no worker serves ${which}`,
      waitingFor: 'task',
      advice: 'start one that does, or cancel the request if the name is wrong',
    } as const;
  const alive = able.filter(aliveAt(seen));
  if (alive.some(({ draining }) => !draining)) return undefined;
  const of = able.length === workers.length ? 'of its queue' : `that serve ${which}`;
  if (alive.length > 0)
    return { why: `all workers ${of} are closing`, waitingFor: 'worker', advice } as const;
  const seenAt = Math.max(...able.map((worker) => worker.seenAt));
  const silent =
    able.length === 1
      ? `the only worker ${of.replace('serve', 'serves')} was last seen`
      : `the ${n(able.length)} workers ${of} were last seen`;
  return {
    why: `${silent} ${ago(seenAt, readAt)}`,
    waitingFor: 'worker',
    advice: 'start another one; if its process still runs, a handler may block its event loop',
  } as const;
}

const busyOf = ({ running, leftovers }: RegisteredWorker) => running + leftovers;
const hasFree = (worker: RegisteredWorker) => busyOf(worker) < worker.concurrency;

/** The workers that could run it, and their slots. Free slots of workers that take no work count as none. */
export function fleetFor(seen: Snapshot) {
  const { queue, readAt, task = '' } = seen;
  const able = queue.workers
    .filter(aliveAt(seen))
    .filter((worker) => !worker.draining && serves(worker, task));
  const unfit = able.filter(hasFree).filter((worker) => isUnfit(worker, seen));
  const slotsOf = (one: RegisteredWorker) => (unfit.includes(one) ? busyOf(one) : one.concurrency);
  const workers = able.filter((worker) => slotsOf(worker) > 0);
  const slots = workers.reduce((sum, worker) => sum + slotsOf(worker), 0);
  const busy = workers.reduce((sum, worker) => sum + busyOf(worker), 0);
  const free = workers.filter((worker) => hasFree(worker) && !unfit.includes(worker));
  return {
    workers,
    slots,
    free: Math.max(0, slots - busy),
    /** When the oldest report of a free slot was made. */
    freeAt: Math.min(...free.map(({ seenAt }) => seenAt)),
    stuck: stuckOn(workers),
    unfit: unfitAmong(unfit, readAt),
  };
}

/** Whether a worker takes no work although it has free slots, or may have ended since it reported these. */
const isUnfit = (worker: RegisteredWorker, { readAt, queue: { workers } }: Snapshot) =>
  !worker.ready || isLateWorker(worker, workers.length, readAt);

/** The cause that they are, the first of those that report a reason before the others. */
function unfitAmong(unfit: readonly RegisteredWorker[], now: number) {
  const first = unfit.find(({ ready }) => !ready) ?? unfit[0];
  if (!first) return undefined;
  const { id, ready, why, seenAt, suspects } = first;
  const others = unfit.length - 1;
  const more = (verb: string) => (others === 0 ? '' : `; ${n(others)} more ${verb}`);
  if (ready)
    return {
      why: `worker ${id} was last seen ${ago(seenAt, now)} and may have ended${more('did not report in time')}`,
      waitingFor: undefined,
      advice: 'start another worker if it has; if not, its log says why it does not report',
    };
  const waitingFor: WaitingFor = 'worker';
  const advice = suspects
    ? 'wait, or start another worker'
    : 'correct this, or start a worker that can';
  const said = why[0]?.replace(/\.$/, '') ?? 'it reports no reason';
  const reason = `${said}${more(others === 1 ? 'takes none' : 'take none')}`;
  return { why: `worker ${id} takes no work: ${reason}`, waitingFor, advice };
}

/** '; worker host-1-x takes no work: no blocking connection to Redis: …' */
export const unfitText = (unfit: ReturnType<typeof unfitAmong>): string =>
  unfit ? `; ${unfit.why}` : '';

/** '; 2 slots are kept by handlers that ignore their abort signal (on host-1-x)' */
export const stuckText = (stuck: ReturnType<typeof stuckOn>): string =>
  stuck ? `; ${slotsText(stuck.slots)} ${stuck.slots === 1 ? 'is' : 'are'} kept ${stuck.by}` : '';

/** The slots that only the end of a process frees. */
function stuckOn(workers: readonly RegisteredWorker[]) {
  const [worst, ...others] = workers
    .filter(({ leftovers }) => leftovers > 0)
    .sort((a, b) => b.leftovers - a.leftovers);
  if (!worst) return undefined;
  const elsewhere = others.reduce((sum, { leftovers }) => sum + leftovers, 0);
  const slots = worst.leftovers + elsewhere;
  const names = others.length === 1 ? others[0]?.id : `${n(others.length)} other workers`;
  const on =
    elsewhere === 0
      ? `on ${worst.id}`
      : `${n(worst.leftovers)} on ${worst.id}, ${n(elsewhere)} on ${names}`;
  const who = slots === 1 ? 'a handler that ignores its' : 'handlers that ignore their';
  const rest = elsewhere === 0 ? '' : ', then those of the others';
  return {
    slots,
    by: `by ${who} abort signal (${on})`,
    advice: `end process ${worst.pid} on ${worst.host}${rest}; the handler should heed ctx.signal`,
  };
}
