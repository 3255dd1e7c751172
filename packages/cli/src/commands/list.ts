import type { RequestStatus } from '@piecework/notifier';
import { isSilentWorker } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import type { ListOptions } from 'piecework';
import { commonFlags } from '../flags/common-flags.js';
import { listFlags } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { print, printTable } from '../terminal/print.js';
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
    const requests: RequestStatus[] = [];
    for await (const request of pw.admin.list({ state: values.state ?? 'open' })) {
      if (values.json) print(JSON.stringify(request));
      else requests.push(request);
    }
    if (values.json) return;
    const nothing = requests.length === 0 ? await emptyText(values) : '';
    const { listedTable } = await import('../output/request-table.js');
    printTable(listedTable(requests, nothing));
  });

  const workers = program.command('workers').description('show the workers of a queue');
  addFlags(workers, commonFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<ListValues>(given, commonFlags);
    await using pw = await openPiecework(values);
    const found = await pw.admin.workers();
    const { workerTable } = await import('../output/worker-table.js');
    if (values.json)
      for (const worker of found)
        print(
          JSON.stringify({ ...worker, silent: isSilentWorker(worker, found.length, Date.now()) }),
        );
    else {
      const nothing = found.length === 0 ? `no workers${await elsewhere(values)}` : '';
      printTable(workerTable(found, nothing));
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
