import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { statusFlags } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { print, printTable } from '../terminal/print.js';
import { openPiecework } from './open-piecework.js';

interface StatusValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  running: boolean;
  limit: number;
}

/** `status`: where a request is, and with `--running` which of its sub-requests run now. */
export function statusCommand(program: Command): void {
  const status = program
    .command('status')
    .argument('<id>')
    .description('show the status of a request');
  addFlags(status, commonFlags, statusFlags).action(
    async (id: string, given: Record<string, unknown>) => {
      const values = readFlags<StatusValues>(given, commonFlags, statusFlags);
      await using pw = await openPiecework(values);
      const request = pw.request(id);
      const seen = await request.status();
      const { statusText } = await import('../output/status-text.js');
      if (!values.running) {
        if (values.json) print(JSON.stringify(seen));
        else printTable(statusText(seen));
        return;
      }
      const running = await request.running({ limit: values.limit });
      if (values.json) for (const one of running) print(JSON.stringify(one));
      else {
        const { runningTable } = await import('../output/running-table.js');
        printTable(`${statusText(seen)}\n\n${runningTable(running, seen)}`);
      }
    },
  );
}
