import type { RequestStatus, ResultsOptions } from '@piecework/notifier';
import type { Command } from 'commander';
import { addFlags, commonFlags, outFlags, readFlags, resultsFlags, statusFlags } from './flags.js';
import { Output, writeResults } from './output.js';
import { openPiecework } from './redis-url.js';
import { type ResultFormat, resultFormats } from './result-format.js';
import { runningTable } from './running.js';
import { columnsOf, shortened } from './table.js';

interface LookValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
}

interface StatusValues extends LookValues {
  running: boolean;
  limit: number;
}

/** `status`, `results` and `drop`: commands on one request that is there. */
export function lookCommands(program: Command): void {
  const status = program.command('status').argument('<id>').description('show a request');
  addFlags(status, commonFlags, statusFlags).action(
    async (id: string, given: Record<string, unknown>) => {
      const values = readFlags<StatusValues>(given, commonFlags, statusFlags);
      await using pw = await openPiecework(values);
      const request = pw.request(id);
      const seen = await request.status();
      if (!values.running) {
        console.log(values.json ? JSON.stringify(seen) : describe(seen));
        return;
      }
      const running = await request.running({ limit: values.limit });
      if (values.json) for (const one of running) console.log(JSON.stringify(one));
      else console.log(`${describe(seen)}\n\n${runningTable(running, seen.counts.inFlight)}`);
    },
  );

  const results = program
    .command('results')
    .argument('<id>')
    .description('print results, live until the request is complete');
  addFlags(results, commonFlags, resultsFlags, outFlags).action(
    async (id: string, given: Record<string, unknown>) => {
      const values = readFlags<
        LookValues & ResultsOptions & { out?: string; format?: ResultFormat }
      >(given, commonFlags, resultsFlags, outFlags);
      const { order, failed, cursor, out = '-', format } = values;
      const output = await Output.open('--out', out);
      await using pw = await openPiecework(values).catch(async (error: unknown) => {
        await output.abandon();
        throw error;
      });
      const read = { order, failed, ...(cursor === undefined ? {} : { cursor }) };
      await writeResults(pw.request(id).results(read), output, format && resultFormats[format]);
    },
  );

  const drop = program
    .command('drop')
    .argument('<id>')
    .description('remove a request and everything of it, whatever its state');
  addFlags(drop, commonFlags).action(async (id: string, given: Record<string, unknown>) => {
    const values = readFlags<LookValues>(given, commonFlags);
    await using pw = await openPiecework(values);
    await pw.request(id).drop();
    console.log(values.json ? JSON.stringify({ id, dropped: true }) : `${id} dropped`);
  });
}

const WHY_ENDED: Readonly<Record<NonNullable<RequestStatus['endReason']>, string>> = {
  deadline: 'early: its deadline passed',
  failures: 'early: too many sub-requests failed',
  cancel: 'early: somebody cancelled it',
  'producer-lost': 'early: its producer was lost before all items were in',
};

function describe(seen: RequestStatus): string {
  const { counts } = seen;
  const lines = [
    `request     ${seen.id}`,
    `status      ${seen.outcome ? `${seen.status} (${seen.outcome})` : seen.status}`,
    `generation  ${seen.generation}`,
    `priority    ${seen.priority}`,
    `limit       ${seen.limit ?? 'none'}`,
    ...(seen.task ? [`task        ${seen.task}`] : []),
    ...(seen.endReason ? [`ended       ${WHY_ENDED[seen.endReason]}`] : []),
    ...(seen.waiting ? [`waiting     ${seen.waiting}`] : []),
    `total       ${counts.total}`,
    ...(['ready', 'inFlight', 'delayed', 'succeeded', 'failed', 'cancelled'] as const).map(
      (name) => `  ${name.padEnd(10)}${counts[name]}`,
    ),
    `created     ${new Date(seen.createdAt).toISOString()}`,
    ...(seen.completedAt ? [`completed   ${new Date(seen.completedAt).toISOString()}`] : []),
  ];
  return lines.map((line) => shortened(line, columnsOf(process.stdout))).join('\n');
}
