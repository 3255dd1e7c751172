import { isOverdueAt, isSilentWorker } from '@piecework/protocol';
import type { RegisteredWorker } from 'piecework';
import { duration } from '../shape/format.js';
import type { WorkersView, WorkerView } from '../shape/views.js';
import { cut } from './private.js';

/** Most workers that reach a page; those in trouble come first. */
const MOST = 500;

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
  const perProcess = new Map<string, number>();
  for (const worker of all)
    perProcess.set(processOf(worker), (perProcess.get(processOf(worker)) ?? 0) + 1);
  const views = all.map((worker) => {
    const mates = (perProcess.get(processOf(worker)) ?? 1) - 1;
    return workerView(worker, told, mates, all.length, now);
  });
  views.sort((a, b) => ORDER[a.state] - ORDER[b.state] || a.startedAt - b.startedAt);
  const states: Record<string, number> = {};
  for (const { state } of views) states[state] = (states[state] ?? 0) + 1;
  const fleet = { slots: 0, busy: 0, stuck: 0 };
  const unready = new Set(all.filter(({ ready }) => !ready).map(({ id }) => id));
  for (const { id, state, concurrency, running, leftovers } of views) {
    if (state === 'silent' || state === 'drains') continue;
    if (state === 'unwell' && unready.has(id)) continue;
    fleet.slots += concurrency;
    fleet.busy += running;
    fleet.stuck += leftovers;
  }
  return { at: now, workers: views.slice(0, MOST), total: views.length, states, fleet };
}

const processOf = ({ host, pid }: RegisteredWorker) => `${host} ${pid}`;

/** 'sub-request 7 of a has been running for 1 min, usually 50 ms', in two parts around the id. */
export function overdueWords(
  seenAt: number,
  { index, startedAt, medianMs }: WorkerView['longest'][number],
): readonly [before: string, after: string] {
  // Without tenths: it goes on.
  const lasted = duration(Math.floor((seenAt - startedAt) / 1_000) * 1_000).replace('.0', '');
  return [
    `sub-request ${index} of `,
    ` has been running for ${lasted}, usually ${duration(medianMs ?? 0)}`,
  ];
}

function workerView(
  worker: RegisteredWorker,
  told: (text: string) => string,
  mates: number,
  fleet: number,
  now: number,
): WorkerView {
  const { eventLoopDelayMs, rssBytes, why, seenAt } = worker;
  const isSilent = isSilentWorker(worker, fleet, now);
  const longest = worker.longest
    .map((run) => ({
      ...run,
      medianMs: run.medianMs ?? null,
      isOverdue: isOverdueAt(run, seenAt),
    }))
    .sort((a, b) => Number(b.isOverdue) - Number(a.isOverdue));
  const reasons = why.map((reason) => cut(told(reason), 300));
  if (isSilent) reasons.unshift('no sign of life; it may have ended, or its machine is cut off');
  if (worker.leftovers > 0)
    reasons.push(`${worker.leftovers} slots are held by handlers that ignore their abort signal`);
  const state = isSilent
    ? 'silent'
    : worker.leftovers > 0
      ? 'stuck'
      : why.length > 0
        ? 'unwell'
        : longest[0]?.isOverdue
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
    mates,
    state,
    why: reasons,
    concurrency: worker.concurrency,
    running: worker.running,
    leftovers: worker.leftovers,
    tasks: worker.tasks === '*' ? null : worker.tasks.slice(0, 50),
    startedAt: worker.startedAt,
    seenAt,
    longest,
    eventLoopDelayMs: eventLoopDelayMs ?? null,
    rssBytes: rssBytes ?? null,
  };
}
