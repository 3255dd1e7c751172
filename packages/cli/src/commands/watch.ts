import { checkOption, option } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { watchFlags } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { openPiecework } from './open-piecework.js';

interface WatchValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  everyMs: number;
}

/**
 * `piecework watch ID`: progress of one request until it is complete; the exit code tells its
 * outcome. `piecework watch`: the open requests of the queue, until it is stopped.
 */
export function watchCommand(program: Command): void {
  const command = program
    .command('watch')
    .argument('[id]')
    .description('follow a request to its end, or all open requests until stopped');
  addFlags(command, commonFlags, watchFlags).action(
    async (id: string | undefined, given: Record<string, unknown>) => {
      const values = readFlags<WatchValues>(given, commonFlags, watchFlags);
      if (id !== undefined) checkOption('id', id, option.name());
      await using pw = await openPiecework(values);
      if (id === undefined) {
        const { watchQueue } = await import('../watch/watch-queue.js');
        await watchQueue(pw, values);
      } else {
        const { watchRequest } = await import('../watch/watch-request.js');
        process.exitCode = await watchRequest(pw, id, values);
      }
    },
  );
}
