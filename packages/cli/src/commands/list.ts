import { ago, duration, percent } from '@piecework/dashboard/format';
import type { RequestStatus, WaitingFor } from '@piecework/notifier';
import type { RegisteredWorker } from '@piecework/protocol';
import { TIMES } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import type { ListOptions } from 'piecework';
import { commonFlags } from '../flags/common-flags.js';
import { listFlags } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { longestOf } from '../output/running-table.js';
import { shareBar } from '../terminal/bar.js';
import type { Tone } from '../terminal/colour.js';
import { type Cell, type Column, plainTable } from '../terminal/table.js';
import { openPiecework } from './open-piecework.js';
import { otherShards, SAME_SHARDS } from './other-shards.js';

interface ListValues extends ListOptions {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
}

/** `list` and `workers`: the requests and the workers of a queue. */
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
  const where = `the queue ${queue}${shards === 1 ? '' : ` (${shards} shards were read)`}`;
  const nothing =
    state === 'all'
      ? `no requests in ${where}; --queue names another one, such as run-ID for a run`
      : `no ${state} requests in ${where}; --state all shows others, --queue another queue`;
  return nothing + (await elsewhere(values));
}

/** A second line, when the queue seems to have another number of shards. */
async function elsewhere(values: ListValues): Promise<string> {
  const found = await otherShards(values);
  return found === undefined ? '' : `\n${found}; ${SAME_SHARDS}`;
}

/** The colour of a status; of what waits for somebody, that of a warning. */
const TONES: Readonly<Record<string, Tone>> = {
  ...{ succeeded: 'good', failed: 'bad', cancelled: 'quiet' },
  ...{ paused: 'warning', 'queue paused': 'warning', 'no worker': 'warning' },
  ...{ 'no worker for its task': 'warning', 'no handler': 'warning', 'worker silent': 'warning' },
  ...{ 'producer silent': 'warning' },
};

export const REQUEST_COLUMNS: readonly Column[] = [
  { head: 'request', shrinks: true },
  { head: 'status', shrinks: true, tone: (text) => TONES[text] },
  { head: 'progress', short: '%', right: true },
  { head: 'priority', short: 'prio', right: true },
  { head: 'limit', right: true },
  { head: 'waiting', short: 'wait', right: true },
  { head: 'running', short: 'run', right: true },
  { head: 'delayed', short: 'delay', right: true },
  { head: 'done', right: true },
  {
    head: 'failed',
    short: 'fail',
    right: true,
    tone: (text) => (text === '0' ? undefined : 'bad'),
  },
  { head: 'total', right: true },
  { head: 'created', right: true, drops: true },
];

const LISTED_COLUMNS = REQUEST_COLUMNS.map((column) => ({
  ...column,
  isId: column.head === 'request',
}));

/** Why a request waits, in a few words, and in fewer; `status ID` says more. */
const WAITS: Readonly<Record<Exclude<WaitingFor, 'time'>, Cell>> = {
  resume: 'paused',
  queue: 'queue paused',
  worker: 'no worker',
  task: ['no worker for its task', 'no handler'],
  lease: 'worker silent',
  producer: 'open',
};

/** After this part of its lease without a sign of life, a producer is shown as silent. */
const SILENT_PART = 0.5;

function statusCell(request: RequestStatus): Cell {
  const { outcome, status, waitingFor, heldUntil, readAt, producer, silentWorkers } = request;
  if (outcome) return outcome;
  const silent = silentWorkers.reduce((sum, { inFlight }) => sum + inFlight, 0);
  // Others may run the rest of it.
  if (waitingFor === 'lease' && silent < request.counts.inFlight) return status;
  if (waitingFor === 'time') {
    const ms = Math.max(0, (heldUntil ?? readAt) - readAt);
    return `due in ${duration(ms)}`;
  }
  if (producer && (!waitingFor || waitingFor === 'producer')) {
    const { seenAt, leaseEndsAt } = producer;
    const isSilent = readAt - seenAt > SILENT_PART * (leaseEndsAt - seenAt);
    return isSilent ? 'producer silent' : status;
  }
  return waitingFor ? WAITS[waitingFor] : status;
}

/** What is read ahead, or ended and not settled yet, counts as waiting: what runs is never more than the limit. */
export function requestRow(request: RequestStatus): Cell[] {
  const { id, priority, limit, counts, running, createdAt, readAt } = request;
  const { ready, inFlight, delayed, succeeded, failed, cancelled, total } = counts;
  const done = succeeded + failed + cancelled;
  const numbers = [ready + inFlight - running, running, delayed, done, failed, total];
  const progress = [shareBar(done, total), percent(done, total)] as const;
  const since = ago(createdAt, readAt);
  return [id, statusCell(request), progress, priority, limit ?? 'none', ...numbers, since];
}

const WORKER_COLUMNS: readonly Column[] = [
  { head: 'worker', shrinks: true, isId: true },
  { head: 'state', tone: (text) => (text.startsWith('silent') ? 'bad' : undefined) },
  { head: 'running', right: true },
  { head: 'longest', shrinks: true },
  { head: 'tasks', shrinks: true },
  { head: 'up', right: true },
  { head: 'seen', right: true },
];

/** Whether a worker has given no sign of life for longer than workers do, as for the doctor. It may have ended. */
function isSilent({ seenAt }: RegisteredWorker, fleet: number): boolean {
  return Date.now() - seenAt > Math.max(TIMES.awayMs, fleet * TIMES.awayPerWorkerMs);
}

/** Host and process id are part of the id. */
function workerRow(worker: RegisteredWorker, fleet: number): Cell[] {
  const { id, draining, running, concurrency, leftovers, tasks, startedAt, seenAt } = worker;
  const busy = `${running} of ${concurrency}${leftovers > 0 ? `, ${leftovers} stuck` : ''}`;
  const now = Date.now();
  const known = isSilent(worker, fleet)
    ? [id, `silent ${duration(now - seenAt)}`, '?', '?']
    : [id, draining ? 'drains' : 'works', busy, longestOf(worker)];
  return [
    ...known,
    ...[tasks === '*' ? 'all' : tasks.join(' '), duration(now - startedAt), ago(seenAt, now)],
  ];
}
