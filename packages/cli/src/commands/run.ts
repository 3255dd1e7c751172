import { InvalidOptionError, shardNames } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { addFlags, readFlags, withDefaults } from '../flags/read-flags.js';
import { requestFlags, requestOf } from '../flags/request-flags.js';
import { outFlags, runFlags } from '../flags/run-flags.js';
import { metricsFlags, workerFlags } from '../flags/work-flags.js';
import { processCount } from '../processes/cores.js';
import { checkAgain, isNamed, ownQueue } from '../run/named-run.js';
import { type Slots, slotsOf } from '../run/slots.js';
import { execInputOf, type RunValues } from '../run/values.js';
import { defaultLogFormat } from '../terminal/log-format.js';
import { say } from '../terminal/print.js';
import { checkWork } from '../work/check-work.js';

const NO_REDIS =
  'a run can be continued only with --redis or REDIS_URL, as a Redis of its own ends with it';

const groups = [
  // A queue of its own, always the same for one id: the workers of a shared queue would run the items by another
  // handler.
  withDefaults(commonFlags, { queue: { otherwise: 'run-ID, or a new one' } }),
  // Results that are not written anywhere are not stored either.
  withDefaults(requestFlags, {
    results: { otherwise: 'keep with --out, --out-dir or --joblog, else discard' },
  }),
  outFlags,
  runFlags,
  withDefaults(workerFlags, { logLevel: { value: 'warn' } }),
  withDefaults(metricsFlags, { metricsHost: { value: '127.0.0.1' } }),
];

/** `piecework run`: Redis, workers, request, progress and results, all in one command. */
export function runCommand(program: Command): void {
  const command = program
    .command('run')
    .description('do everything: Redis if none is given, worker processes, progress, results');
  addFlags(command, ...groups).action(async (given: Record<string, unknown>) => {
    const { values, unused } = await readValues(given);
    // Loaded on demand: help and completion need only the flags.
    const [
      { openInput },
      { startLine },
      { dryRun },
      { execFieldsOf },
      { abandon, expectNew, openFiles },
    ] = await Promise.all([
      import('../input/input.js'),
      import('../output/start-line.js'),
      import('../work/dry-run.js'),
      import('../work/exec-fields.js'),
      import('../run/files.js'),
    ]);
    using items = await openInput(values);
    const execFields = await execFieldsOf(values, items);
    if (execFields !== undefined) values.execFields = execFields;
    if (values.runAt !== undefined && !values.json) say(startLine(values.runAt));
    if (values.dryRun) return await dryRun(items, values);
    // Before the files are opened: a signal while it is loaded would leave empty ones.
    const { run } = await import('../run/run.js');
    const files = await openFiles(values, isNamed(values));
    try {
      if (values.id !== undefined && !isNamed(values)) {
        await expectNew(files, NO_REDIS);
        say(`${values.id} cannot be continued later: ${NO_REDIS}`);
      }
      process.exitCode = await run({ items, values, files, unused });
    } finally {
      await abandon(files);
    }
  });
}

/** The values of the flags, checked against each other. @throws InvalidOptionError */
async function readValues(given: Record<string, unknown>): Promise<{
  readonly values: RunValues;
  readonly unused: Slots['unused'];
}> {
  const read = readFlags<Omit<RunValues, 'queue' | 'hasOwnQueue'> & { queue?: string }>(
    given,
    ...groups,
  );
  read.processes = processCount(read.processes);
  const { id, out, outDir, joblog, format } = read;
  const unwritten = [out, outDir, joblog].every((file) => file === undefined);
  const results = read.results ?? (unwritten ? 'discard' : 'keep');
  const queue = read.queue ?? ownQueue(id);
  const logFormat = read.logFormat ?? defaultLogFormat();
  const { unused, ...slots } = slotsOf(given, read);
  const values: RunValues = {
    ...{ ...read, ...slots, queue, hasOwnQueue: read.queue === undefined, logFormat, results },
    ...execInputOf(read),
  };
  await checkWork(values);
  shardNames(queue, values.shards);
  requestOf({ ...values });
  checkAgain(values);
  for (const [flag, file] of [
    ['--out', out],
    ['--out-dir', outDir],
    ['--joblog', joblog],
  ])
    if (file !== undefined && results === 'discard')
      throw new InvalidOptionError('--results', 'discard', `keep, as ${flag} wants them`);
  if (format !== undefined && out === undefined)
    throw new InvalidOptionError('--format', format, 'together with --out');
  return { values, unused };
}
