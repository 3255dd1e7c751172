import type { RegisteredWorker } from '@piecework/protocol';
import type { RunningSubRequest } from 'piecework';
import prettyMs from 'pretty-ms';
import { type Column, plainTable } from './table.js';

const COLUMNS: readonly Column[] = [
  ...[{ head: 'index' }, { head: 'attempt' }, { head: 'for' }, { head: 'progress' }],
  { head: 'worker', shrinks: true },
];

const lasting = (ms: number) =>
  prettyMs(Math.max(0, ms), { unitCount: 2, secondsDecimalDigits: 0 });

/** `status ID --running`: what runs, the longest first. `inFlight`: how much runs in all. */
export function runningTable(running: readonly RunningSubRequest[], inFlight: number): string {
  const rows = running.map(({ index, attempt, forMs, progress, worker }) => [
    ...[String(index), String(attempt), lasting(forMs)],
    ...[progress === undefined ? '' : String(progress), worker],
  ]);
  const table = plainTable(COLUMNS, rows, 'nothing runs');
  const more = inFlight - running.length;
  return more > 0 && running.length > 0 ? `${table}\n… and ${more} more (--limit)` : table;
}

/** '12m job1:4': what runs longest on a worker; '' when nothing does. */
export function longestOf({ longest: [first] }: RegisteredWorker): string {
  if (!first) return '';
  const { requestId, index, startedAt } = first;
  const since = prettyMs(Math.max(0, Date.now() - startedAt), { compact: true });
  return `${since} ${requestId}:${index}`;
}
