import type { RegisteredWorker } from '@piecework/protocol';
import { isSilentWorker } from '@piecework/protocol/contract';
import { ago, duration } from '@piecework/views/format';
import { type Cell, type Column, plainTable } from '../terminal/table.js';
import { longestOf } from './running-table.js';

const WORKER_COLUMNS: readonly Column[] = [
  { head: 'worker', shrinks: true, isId: true },
  { head: 'state', tone: (text) => (/^(silent|not ready)/.test(text) ? 'bad' : undefined) },
  { head: 'running', right: true },
  { head: 'longest', shrinks: true },
  { head: 'tasks', shrinks: true },
  { head: 'up', right: true },
  { head: 'seen', right: true },
];

/** Host and process id are part of the id. */
function workerRow(worker: RegisteredWorker, fleet: number): Cell[] {
  const { id, draining, ready, running, concurrency, leftovers } = worker;
  const { tasks, startedAt, seenAt } = worker;
  const busy = `${running} of ${concurrency}${leftovers > 0 ? `, ${leftovers} stuck` : ''}`;
  const now = Date.now();
  const known = isSilentWorker(worker, fleet, now)
    ? [id, `silent ${duration(now - seenAt)}`, '?', '?']
    : [id, draining ? 'drains' : ready ? 'works' : 'not ready', busy, longestOf(worker)];
  return [
    ...known,
    ...[tasks === '*' ? 'all' : tasks.join(' '), duration(now - startedAt), ago(seenAt, now)],
  ];
}

export const workerTable = (workers: readonly RegisteredWorker[], whenEmpty: string): string =>
  plainTable(
    WORKER_COLUMNS,
    workers.map((worker) => workerRow(worker, workers.length)),
    whenEmpty,
  );
