import type { RequestStatus, WaitingFor } from '@piecework/notifier';
import { type RegisteredWorker, TIMES } from '@piecework/protocol';
import type { Command } from 'commander';
import type { ListOptions } from 'piecework';
import prettyMs from 'pretty-ms';
import { addFlags, commonFlags, listFlags, readFlags } from './flags.js';
import { otherShards, SAME_SHARDS } from './other-shards.js';
import { openPiecework } from './redis-url.js';
import { longestOf } from './running.js';
import { type Cell, type Column, plainTable } from './table.js';

interface ListValues extends ListOptions {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
}

/** `list` and `workers`: what a queue holds. */
export function listCommands(program: Command): void {
  const list = program.command('list').description('show the requests of a queue');
  addFlags(list, commonFlags, listFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<ListValues>(given, commonFlags, listFlags);
    await using pw = await openPiecework(values);
    const rows: Cell[][] = [];
    for await (const request of pw.admin.list({ state: values.state ?? 'open' })) {
      if (values.json) console.log(JSON.stringify(request));
      else rows.push(requestRow(request));
    }
    if (values.json) return;
    const nothing = rows.length === 0 ? await emptyText(values) : '';
    console.log(plainTable(LISTED_COLUMNS, rows, nothing));
  });

  const workers = program.command('workers').description('show the workers of a queue');
  addFlags(workers, commonFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<ListValues>(given, commonFlags);
    await using pw = await openPiecework(values);
    const found = await pw.admin.workers();
    if (values.json)
      for (const worker of found)
        console.log(JSON.stringify({ ...worker, silent: isSilent(worker, found.length) }));
    else {
      const rows = found.map((worker) => workerRow(worker, found.length));
      const nothing = rows.length === 0 ? `no workers${await elsewhere(values)}` : '';
      console.log(plainTable(WORKER_COLUMNS, rows, nothing));
    }
  });
}

async function emptyText(values: ListValues): Promise<string> {
  const { state = 'open', queue, shards } = values;
  const where = `the queue ${queue}${shards === 1 ? '' : ` (${shards} shards looked at)`}`;
  const nothing =
    state === 'all'
      ? `no requests in ${where}; --queue names another, such as run-ID of a run`
      : `no ${state} requests in ${where}; there is --state all, and --queue`;
  return nothing + (await elsewhere(values));
}

/** A second line when the number of shards seems to be another one. */
async function elsewhere(values: ListValues): Promise<string> {
  const found = await otherShards(values);
  return found === undefined ? '' : `\n${found}; ${SAME_SHARDS}`;
}

export const REQUEST_COLUMNS: readonly Column[] = [
  { head: 'request', shrinks: true },
  { head: 'status', shrinks: true },
  { head: 'priority', short: 'prio' },
  { head: 'limit' },
  { head: 'ready' },
  { head: 'in flight', short: 'flight' },
  { head: 'delayed', short: 'delay' },
  { head: 'done' },
  { head: 'failed' },
  { head: 'total' },
];

const LISTED_COLUMNS = REQUEST_COLUMNS.map((column) => ({
  ...column,
  isId: column.head === 'request',
}));

/** Why a request does not move, as short as a column; `status ID` says more. */
const STANDS: Readonly<Record<WaitingFor, string>> = {
  resume: 'paused',
  queue: 'queue paused',
  worker: 'no worker',
  task: 'no worker for its task',
  time: 'held back',
};

export function requestRow(request: RequestStatus): Cell[] {
  const { id, status, outcome, waitingFor, priority, limit, counts } = request;
  const { ready, inFlight, delayed, succeeded, failed, cancelled, total } = counts;
  const done = succeeded + failed + cancelled;
  const numbers = [ready, inFlight, delayed, done, failed, total];
  const stands = waitingFor ? STANDS[waitingFor] : status;
  return [id, outcome ?? stands, priority, limit ?? 'none', ...numbers];
}

const WORKER_COLUMNS: readonly Column[] = [
  { head: 'worker', shrinks: true, isId: true },
  { head: 'state' },
  { head: 'running' },
  { head: 'longest', shrinks: true },
  { head: 'tasks', shrinks: true },
  { head: 'up' },
  { head: 'seen' },
];

/** Nobody who lives says so more seldom: as the doctor has it. What it said last may not be so any more. */
function isSilent({ seenAt }: RegisteredWorker, fleet: number): boolean {
  return Date.now() - seenAt > Math.max(TIMES.awayMs, fleet * TIMES.awayPerWorkerMs);
}

/** Host and process stand in the id. */
function workerRow(worker: RegisteredWorker, fleet: number): Cell[] {
  const { id, draining, running, concurrency, leftovers, tasks, startedAt, seenAt } = worker;
  const busy = `${running} of ${concurrency}${leftovers > 0 ? `, ${leftovers} stuck` : ''}`;
  const since = (at: number) => prettyMs(Math.max(0, Date.now() - at), { compact: true });
  const known = isSilent(worker, fleet)
    ? [id, `silent ${since(seenAt)}`, '?', '?']
    : [id, draining ? 'drains' : 'works', busy, longestOf(worker)];
  return [
    ...known,
    ...[tasks === '*' ? 'all' : tasks.join(' '), since(startedAt), `${since(seenAt)} ago`],
  ];
}
