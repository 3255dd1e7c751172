import type { Command } from 'commander';
import type { Counts } from 'piecework';
import { commonFlags } from '../flags/common-flags.js';
import { redriveFlags, waitFlag } from '../flags/control-flags.js';
import { indexesOf } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { print, say } from '../terminal/print.js';
import { openPiecework } from './open-piecework.js';

interface RedriveValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  index?: string;
  error?: string;
  wait: boolean;
}

/** Why nothing runs again. */
function nothingOf({ failed, cancelled }: Counts, isSelected: boolean): string {
  if (failed > 0 && isSelected)
    return `nothing runs again: none of its ${failed} failures was selected`;
  const others =
    cancelled > 0 ? `; ${cancelled} were cancelled, and a redrive does not run those` : '';
  return `nothing runs again: nothing failed${others}`;
}

/** `redrive`: runs the failed sub-requests of a complete request again. */
export function redriveCommand(program: Command): void {
  const command = program
    .command('redrive')
    .argument('<id>')
    .description('run the failed sub-requests of a complete request again; other results stay');
  const groups = [commonFlags, redriveFlags, [waitFlag]];
  addFlags(command, ...groups).action(async (id: string, given: Record<string, unknown>) => {
    const values = readFlags<RedriveValues>(given, ...groups);
    const { index, error, wait, json } = values;
    await using pw = await openPiecework(values);
    const request = pw.request(id);
    const { generation, redriven } = await request.redrive({
      ...indexesOf(index),
      ...(error === undefined ? {} : { name: error }),
    });
    if (!wait) {
      if (json) print(JSON.stringify({ id, generation, redriven }));
      else if (redriven > 0) print(`${id}: ${redriven} run again`);
      else {
        const { counts } = await request.status();
        print(`${id}: ${nothingOf(counts, index !== undefined || error !== undefined)}`);
      }
      return;
    }
    const { showProgress } = await import('../terminal/progress-bar.js');
    const [outcome] = await Promise.all([
      request.completion(),
      json ? undefined : showProgress(request.progress()),
    ]);
    const { status, counts } = outcome;
    if (json)
      print(JSON.stringify({ id, status, counts, generation: outcome.generation, redriven }));
    else say(`${id} ${status}: ${redriven} ran again, ${counts.failed} failed`);
    process.exitCode = status === 'succeeded' ? 0 : 1;
  });
}
