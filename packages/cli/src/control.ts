import { InvalidOptionError } from '@piecework/protocol';
import type { Command } from 'commander';
import type { UpdateOptions } from 'piecework';
import {
  addFlags,
  commonFlags,
  type Flag,
  pauseFlags,
  queueWideFlag,
  readFlags,
  updateFlags,
} from './flags.js';
import { openPiecework } from './redis-url.js';

interface ControlValues extends UpdateOptions {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  queueWide: boolean;
  forMs?: number;
}

/** `cancel`, `pause`, `resume` and `update`: what is done to a request, or to a queue, while it runs. */
export function controlCommands(program: Command): void {
  const cancel = program
    .command('cancel')
    .argument('<id>')
    .description('cancel a request: what has not started never will; results stay');
  addFlags(cancel, commonFlags).action(async (id: string, given: Record<string, unknown>) => {
    const values = readFlags<ControlValues>(given, commonFlags);
    await using pw = await openPiecework(values);
    const cancelled = await pw.request(id).cancel();
    const said = cancelled.status === 'complete' ? `complete (${cancelled.outcome})` : 'cancelling';
    console.log(values.json ? JSON.stringify({ id, ...cancelled }) : `${id} is ${said}`);
  });

  const pause = program
    .command('pause')
    .argument('[id]')
    .description('start nothing more of a request, or (--queue-wide) of the whole queue');
  addFlags(pause, commonFlags, pauseFlags).action(
    async (id: string | undefined, given: Record<string, unknown>) => {
      const values = readFlags<ControlValues>(given, commonFlags, pauseFlags);
      checkWhat(id, values);
      await using pw = await openPiecework(values);
      const { forMs, queue } = values;
      if (id === undefined) await pw.admin.pauseQueue(forMs === undefined ? {} : { forMs });
      else await pw.request(id).pause();
      tell(values, id === undefined ? { queue, paused: true } : { id, paused: true });
    },
  );

  const resume = program
    .command('resume')
    .argument('[id]')
    .description('let a paused request, or (--queue-wide) the paused queue, go on');
  addFlags(resume, commonFlags, [queueWideFlag]).action(
    async (id: string | undefined, given: Record<string, unknown>) => {
      const values = readFlags<ControlValues>(given, commonFlags, [queueWideFlag]);
      checkWhat(id, values);
      await using pw = await openPiecework(values);
      const { queue } = values;
      if (id === undefined) await pw.admin.resumeQueue();
      else await pw.request(id).resume();
      tell(values, id === undefined ? { queue, paused: false } : { id, paused: false });
    },
  );

  const update = program
    .command('update')
    .argument('<id>')
    .description('change limit, priority or tolerated failures of a request that goes on');
  addFlags(update, commonFlags, updateFlags).action(
    async (id: string, given: Record<string, unknown>) => {
      const values = readFlags<ControlValues>(given, commonFlags, updateFlags);
      const { limit, priority, toleratedFailures } = values;
      if ([limit, priority, toleratedFailures].every((it) => it === undefined))
        throw new InvalidOptionError(flagsOf(updateFlags), undefined, 'at least one of them');
      await using pw = await openPiecework(values);
      await pw.request(id).update({ limit, priority, toleratedFailures });
      const changed = { limit, priority, toleratedFailures };
      console.log(values.json ? JSON.stringify({ id, ...changed }) : `${id} updated`);
    },
  );
}

/** '--limit, --priority, …' */
const flagsOf = (flags: readonly Flag[]) =>
  flags.map(({ usage }) => usage.split(' ')[0]).join(', ');

/** Either one request or the whole queue. @throws InvalidOptionError */
function checkWhat(id: string | undefined, { queueWide, forMs }: ControlValues): void {
  if (id === undefined && !queueWide)
    throw new InvalidOptionError('id', undefined, 'the id of a request, or --queue-wide');
  if (id !== undefined && queueWide)
    throw new InvalidOptionError('--queue-wide', true, 'no id of a request beside it');
  if (id !== undefined && forMs !== undefined)
    throw new InvalidOptionError('--for-ms', forMs, 'only with --queue-wide');
}

function tell(
  { json }: ControlValues,
  what: { id?: string; queue?: string; paused: boolean },
): void {
  const name = what.id ?? `queue ${what.queue}`;
  const text = what.paused ? `${name} paused` : `${name} goes on`;
  console.log(json ? JSON.stringify(what) : text);
}
