import { duration } from '@piecework/dashboard/format';
import type { RegisteredWorker } from '@piecework/protocol';
import type { RunningSubRequest } from 'piecework';
import { type Column, plainTable } from '../terminal/table.js';

const COLUMNS: readonly Column[] = [
  { head: 'index', right: true },
  { head: 'attempt', right: true },
  { head: 'for', right: true },
  { head: 'progress', right: true },
  { head: 'worker', shrinks: true },
];

/** The table of `status ID --running`, the longest first. `inFlight`: how many sub-requests run in all. */
export function runningTable(running: readonly RunningSubRequest[], inFlight: number): string {
  const rows = running.map(({ index, attempt, forMs, progress, worker }) => [
    ...[String(index), String(attempt), duration(forMs)],
    ...[progress === undefined ? '' : String(progress), worker],
  ]);
  const table = plainTable(COLUMNS, rows, 'nothing runs');
  const more = inFlight - running.length;
  return more > 0 && running.length > 0 ? `${table}\n… and ${more} more (--limit)` : table;
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
