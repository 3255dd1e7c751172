import type { RequestStatus } from '@piecework/notifier';
import type { RegisteredWorker } from '@piecework/protocol';
import type { Command } from 'commander';
import type { ListOptions } from 'piecework';
import prettyMs from 'pretty-ms';
import { addFlags, commonFlags, listFlags, readFlags } from './flags.js';
import { openPiecework } from './redis-url.js';
import { longestOf } from './running.js';
import { plainTable } from './table.js';

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
    const rows: string[][] = [];
    for await (const request of pw.admin.list({ state: values.state ?? 'open' })) {
      if (values.json) console.log(JSON.stringify(request));
      else rows.push(requestRow(request));
    }
    if (!values.json) console.log(plainTable(REQUEST_HEAD, rows, 'no requests'));
  });

  const workers = program.command('workers').description('show the workers of a queue');
  addFlags(workers, commonFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<ListValues>(given, commonFlags);
    await using pw = await openPiecework(values);
    const found = await pw.admin.workers();
    if (values.json) for (const worker of found) console.log(JSON.stringify(worker));
    else console.log(plainTable(WORKER_HEAD, found.map(workerRow), 'no workers'));
  });
}

export const REQUEST_HEAD = [
  ...['request', 'status', 'priority', 'limit', 'ready', 'in flight', 'delayed', 'done', 'failed'],
  'total',
];

const number = (n: number | null) => n?.toLocaleString('en-US') ?? 'none';

export function requestRow(request: RequestStatus): string[] {
  const { id, status, outcome, waiting, priority, limit, counts } = request;
  const { ready, inFlight, delayed, succeeded, failed, cancelled, total } = counts;
  const done = succeeded + failed + cancelled;
  const numbers = [priority, limit, ready, inFlight, delayed, done, failed, total];
  return [id, outcome ?? waiting ?? status, ...numbers.map(number)];
}

const WORKER_HEAD = ['worker', 'state', 'running', 'longest', 'tasks', 'up', 'seen'];

/** Host and process stand in the id. */
function workerRow(worker: RegisteredWorker): string[] {
  const { id, draining, running, concurrency, tasks, startedAt, seenAt } = worker;
  const since = (at: number) => prettyMs(Math.max(0, Date.now() - at), { compact: true });
  return [
    ...[id, draining ? 'drains' : 'works', `${running} of ${concurrency}`, longestOf(worker)],
    ...[tasks === '*' ? 'all' : tasks.join(' '), since(startedAt), `${since(seenAt)} ago`],
  ];
}
