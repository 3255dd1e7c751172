import type { RegisteredWorker } from 'piecework';
import { duration } from '../shape/format.js';
import type { WorkersView, WorkerView } from '../shape/views.js';
import { cut } from './private.js';

/** Most workers that reach a page; those in trouble come first. */
const MOST = 500;
/** A worker without a sign of life for longer may have ended: as for `piecework workers` and the doctor. */
const AWAY_MS = 15_000;
const AWAY_PER_WORKER_MS = 190;
/** A handler that runs so many times longer than its task usually does is overdue, which the doctor says after a minute. */
const OVERDUE_TIMES = 10;
const OVERDUE_AT_LEAST_MS = 5_000;

const ORDER: Readonly<Record<WorkerView['state'], number>> = {
  silent: 0,
  stuck: 1,
  unwell: 2,
  overdue: 3,
  drains: 4,
  works: 5,
  idle: 6,
};

/**
 * The workers, those in trouble first.
 * @param told removes what the page may not know
 */
export function workersView(
  all: readonly RegisteredWorker[],
  told: (text: string) => string,
  now = Date.now(),
): WorkersView {
  const views = all.map((worker) => workerView(worker, told, all.length, now));
  views.sort((a, b) => ORDER[a.state] - ORDER[b.state] || a.startedAt - b.startedAt);
  const states: Record<string, number> = {};
  for (const { state } of views) states[state] = (states[state] ?? 0) + 1;
  return { at: now, workers: views.slice(0, MOST), total: views.length, states };
}

/** The requests of which a sub-request runs far longer than is usual. */
export function overdueRequests({ at, workers }: WorkersView): ReadonlySet<string> {
  const overdue = workers.flatMap(({ longest }) => longest.filter((run) => isOverdue(run, at)));
  return new Set(overdue.map(({ requestId }) => requestId));
}

export function isOverdue(
  { startedAt, medianMs }: { startedAt: number; medianMs?: number | null },
  now: number,
): boolean {
  const forMs = now - startedAt;
  return (
    typeof medianMs === 'number' && forMs > Math.max(OVERDUE_AT_LEAST_MS, OVERDUE_TIMES * medianMs)
  );
}

/** Without tenths: it goes on. */
const lasted = (ms: number) => duration(Math.floor(ms / 1_000) * 1_000).replace('.0', '');

function workerView(
  worker: RegisteredWorker,
  told: (text: string) => string,
  fleet: number,
  now: number,
): WorkerView {
  const { eventLoopDelayMs, rssBytes, why } = worker;
  const isSilent = now - worker.seenAt > Math.max(AWAY_MS, fleet * AWAY_PER_WORKER_MS);
  const overdue = worker.longest.find((run) => isOverdue(run, now));
  const reasons = why.map((reason) => cut(told(reason), 300));
  if (isSilent) reasons.unshift('no sign of life; it may have ended, or its machine is cut off');
  if (worker.leftovers > 0)
    reasons.push(`${worker.leftovers} slots are held by handlers that ignore their abort signal`);
  if (overdue)
    reasons.push(
      `sub-request ${overdue.index} of ${overdue.requestId} has been running for ${lasted(worker.seenAt - overdue.startedAt)}, usually ${duration(overdue.medianMs ?? 0)}`,
    );
  const state = isSilent
    ? 'silent'
    : worker.leftovers > 0
      ? 'stuck'
      : why.length > 0
        ? 'unwell'
        : overdue
          ? 'overdue'
          : worker.draining
            ? 'drains'
            : worker.running > 0
              ? 'works'
              : 'idle';
  return {
    id: worker.id,
    host: worker.host,
    pid: worker.pid,
    state,
    why: reasons,
    concurrency: worker.concurrency,
    running: worker.running,
    leftovers: worker.leftovers,
    tasks: worker.tasks === '*' ? null : worker.tasks.slice(0, 50),
    startedAt: worker.startedAt,
    seenAt: worker.seenAt,
    longest: worker.longest.map((run) => ({ ...run, medianMs: run.medianMs ?? null })),
    eventLoopDelayMs: eventLoopDelayMs ?? null,
    rssBytes: rssBytes ?? null,
  };
}
