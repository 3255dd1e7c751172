import type { RequestStatus } from '@piecework/notifier';
import type { RegisteredWorker } from '@piecework/protocol';
import { count, duration } from '@piecework/views/format';
import type { RunningSubRequest } from 'piecework';
import { type Column, plainTable } from '../terminal/table.js';

const COLUMNS: readonly Column[] = [
  { head: 'index', right: true },
  { head: 'attempt', right: true },
  { head: 'for', right: true },
  { head: 'progress', right: true },
  { head: 'worker', shrinks: true },
];

/**
 * The table of `status ID --running`, the longest first. What workers have read ahead does not run: it is only counted.
 * @param held what workers have: what runs and what they have read ahead
 * @param runs how many sub-requests run in all
 * @param inFlight how many sub-requests workers have in all
 */
export function runningTable(
  held: readonly RunningSubRequest[],
  { running: runs, counts: { inFlight } }: Pick<RequestStatus, 'running' | 'counts'>,
): string {
  const running = held.filter(({ readAhead }) => !readAhead);
  const rows = running.map(({ index, attempt, forMs, progress, worker }) => [
    ...[String(index), String(attempt), duration(forMs)],
    ...[progress === undefined ? '' : String(Number(progress.toPrecision(4))), worker],
  ]);
  const more = runs - running.length;
  const ahead = inFlight - runs;
  return [
    plainTable(COLUMNS, rows, 'nothing runs'),
    ...(more > 0 && rows.length > 0 ? [`… and ${count(more)} more (--limit)`] : []),
    ...(ahead > 0 ? [`${count(ahead)} read ahead: waiting at a worker, not running`] : []),
  ].join('\n');
}

/**
 * '12 min job1:4': the sub-request that had run longest on a worker at the worker's last sign of life; '' when none ran.
 * It may have ended since, so the time since that sign does not count.
 */
export function longestOf({ longest: [first], seenAt }: RegisteredWorker): string {
  if (!first) return '';
  const { requestId, index, startedAt } = first;
  return `${duration(seenAt - startedAt)} ${requestId}:${index}`;
}
