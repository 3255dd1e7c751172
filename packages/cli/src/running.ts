import type { RegisteredWorker } from '@piecework/protocol';
import type { RunningSubRequest } from 'piecework';
import prettyMs from 'pretty-ms';
import { plainTable } from './table.js';

const HEAD = ['index', 'attempt', 'for', 'progress', 'worker'];

const lasting = (ms: number) =>
  prettyMs(Math.max(0, ms), { unitCount: 2, secondsDecimalDigits: 0 });

/** `status ID --running`: what runs, the longest first. `inFlight`: how much runs in all. */
export function runningTable(running: readonly RunningSubRequest[], inFlight: number): string {
  const rows = running.map(({ index, attempt, forMs, progress, worker }) => [
    ...[String(index), String(attempt), lasting(forMs)],
    ...[progress === undefined ? '' : String(progress), worker],
  ]);
  const table = plainTable(HEAD, rows, 'nothing runs');
  const more = inFlight - running.length;
  return more > 0 && running.length > 0 ? `${table}\n… and ${more} more (--limit)` : table;
}

/** Characters of an id that a list of workers has room for in 80 columns. */
const ID_LENGTH = 16;

/** Shortened in the middle, as both ends tell ids apart. */
const shortened = (id: string) =>
  id.length <= ID_LENGTH ? id : `${id.slice(0, ID_LENGTH / 2)}…${id.slice(1 - ID_LENGTH / 2)}`;

/** '12m job1:4': what runs longest on a worker; '' when nothing does. */
export function longestOf({ longest: [first] }: RegisteredWorker): string {
  if (!first) return '';
  const { requestId, index, startedAt } = first;
  const since = prettyMs(Math.max(0, Date.now() - startedAt), { compact: true });
  return `${since} ${shortened(requestId)}:${index}`;
}
