import { InvalidOptionError } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import type { UpdateOptions } from 'piecework';
import { commonFlags } from '../flags/common-flags.js';
import { pauseFlags, queueWideFlag, updateFlags } from '../flags/control-flags.js';
import type { Flag } from '../flags/flag.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { print } from '../terminal/print.js';
import { openPiecework } from './open-piecework.js';

interface ControlValues extends UpdateOptions {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  queueWide: boolean;
  forMs?: number;
}

/** `cancel`, `pause`, `resume`, `update` and `drop`: they change a request, or pause and resume a queue. */
export function controlCommands(program: Command): void {
  const cancel = program
    .command('cancel')
    .argument('<id>')
    .description('cancel a request: nothing more of it starts; results stay');
  addFlags(cancel, commonFlags).action(async (id: string, given: Record<string, unknown>) => {
    const values = readFlags<ControlValues>(given, commonFlags);
    await using pw = await openPiecework(values);
    const cancelled = await pw.request(id).cancel();
    const said = cancelled.status === 'complete' ? `complete (${cancelled.outcome})` : 'cancelling';
    print(values.json ? JSON.stringify({ id, ...cancelled }) : `${id} is ${said}`);
  });

  const pause = program
    .command('pause')
    .argument('[id]')
    .description('start nothing more of a request, or (--queue-wide) of the whole queue');
  addFlags(pause, commonFlags, pauseFlags).action(
    async (id: string | undefined, given: Record<string, unknown>) => {
      const values = readFlags<ControlValues>(given, commonFlags, pauseFlags);
      checkTarget(id, values);
      await using pw = await openPiecework(values);
      const { forMs, queue, json } = values;
      if (id === undefined) {
        const { pausedUntil } = await pw.admin.pauseQueue(forMs === undefined ? {} : { forMs });
        // An earlier pause may last longer than this one.
        const until = pausedUntil === 0 ? 'it is resumed' : new Date(pausedUntil).toISOString();
        const said = { queue, paused: true, pausedUntil };
        print(json ? JSON.stringify(said) : `queue ${queue} is paused until ${until}`);
      } else {
        const { changed } = await pw.request(id).pause();
        const said = changed ? `${id} paused` : `${id} is paused already`;
        print(json ? JSON.stringify({ id, paused: true, changed }) : said);
      }
    },
  );

  const resume = program
    .command('resume')
    .argument('[id]')
    .description('resume a paused request, or (--queue-wide) the paused queue');
  addFlags(resume, commonFlags, [queueWideFlag]).action(
    async (id: string | undefined, given: Record<string, unknown>) => {
      const values = readFlags<ControlValues>(given, commonFlags, [queueWideFlag]);
      checkTarget(id, values);
      await using pw = await openPiecework(values);
      const { queue, json } = values;
      const what = id === undefined ? { queue } : { id };
      const name = id ?? `queue ${queue}`;
      const request = id === undefined ? undefined : pw.request(id);
      const { changed } = await (request ? request.resume() : pw.admin.resumeQueue());
      if (json) return print(JSON.stringify({ ...what, paused: false, changed }));
      // It may have to wait all the same, as for its start.
      const { why = '', waitingFor } = (await request?.status()) ?? {};
      const rest = waitingFor ? `; ${why}` : '';
      // Loaded on demand: no other command of this file wraps lines.
      const { wrapped } = await import('../terminal/table.js');
      print(...wrapped(`${name} ${changed ? 'resumed' : 'is not paused'}${rest}`).split('\n'));
    },
  );

  const update = program
    .command('update')
    .argument('<id>')
    .description('change the limit, priority or tolerated failures of a running request');
  addFlags(update, commonFlags, updateFlags).action(
    async (id: string, given: Record<string, unknown>) => {
      const values = readFlags<ControlValues>(given, commonFlags, updateFlags);
      const { limit, priority, toleratedFailures } = values;
      if ([limit, priority, toleratedFailures].every((it) => it === undefined))
        throw new InvalidOptionError(flagsOf(updateFlags), undefined, 'at least one of them');
      await using pw = await openPiecework(values);
      await pw.request(id).update({ limit, priority, toleratedFailures });
      const changed = { limit, priority, toleratedFailures };
      print(values.json ? JSON.stringify({ id, ...changed }) : `${id} updated`);
    },
  );

  const drop = program
    .command('drop')
    .argument('<id>')
    .description('remove a request with its results, whatever its status');
  addFlags(drop, commonFlags).action(async (id: string, given: Record<string, unknown>) => {
    const values = readFlags<ControlValues>(given, commonFlags);
    await using pw = await openPiecework(values);
    await pw.request(id).drop();
    print(values.json ? JSON.stringify({ id, dropped: true }) : `${id} dropped`);
  });
}

/** '--limit, --priority, …' */
const flagsOf = (flags: readonly Flag[]) =>
  flags.map(({ usage }) => usage.split(' ')[0]).join(', ');

/** @throws InvalidOptionError unless either an id or --queue-wide is given */
function checkTarget(id: string | undefined, { queueWide, forMs }: ControlValues): void {
  if (id === undefined && !queueWide)
    throw new InvalidOptionError('id', undefined, 'the id of a request, or --queue-wide');
  if (id !== undefined && queueWide)
    throw new InvalidOptionError('--queue-wide', true, 'without the id of a request');
  if (id !== undefined && forMs !== undefined)
    throw new InvalidOptionError('--for-ms', forMs, 'together with --queue-wide');
}
