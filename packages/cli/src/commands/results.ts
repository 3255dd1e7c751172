import type { ResultsOptions } from '@piecework/notifier';
import { ENDED_BY } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { resultsFlags } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { outFlags } from '../flags/run-flags.js';
import { type ResultFormat, resultFormats } from '../output/result-format.js';
import { say } from '../terminal/print.js';
import { openPiecework } from './open-piecework.js';

interface ResultsValues extends ResultsOptions {
  redis?: string;
  queue: string;
  shards: number;
  out?: string;
  format?: ResultFormat;
}

/** `results`: prints the results of a request, as they come while it runs. */
export function resultsCommand(program: Command): void {
  const results = program
    .command('results')
    .argument('<id>')
    .description('print the results of a request, live until it is complete');
  addFlags(results, commonFlags, resultsFlags, outFlags).action(
    async (id: string, given: Record<string, unknown>) => {
      const values = readFlags<ResultsValues>(given, commonFlags, resultsFlags, outFlags);
      const { order, failed, cursor, out = '-', format } = values;
      // Loaded on demand: help and completion need only the flags.
      const { Output, writeResults } = await import('../output/output.js');
      const output = await Output.open('--out', out);
      await using pw = await openPiecework(values).catch(async (error: unknown) => {
        await output.abandon();
        throw error;
      });
      const options = { order, failed, live: false, jsonText: true } as const;
      const read = { ...options, ...(cursor === undefined ? {} : { cursor }) };
      const results = pw.request(id).results(read);
      await writeResults(results, output, format && resultFormats[format]);
      const { endReason, counts } = results.outcome ?? {};
      if (endReason && counts && counts.cancelled > 0)
        say(
          `${id} ended early, as ${ENDED_BY[endReason]}; ${counts.cancelled} of ${counts.total} sub-requests have no result`,
        );
    },
  );
}
