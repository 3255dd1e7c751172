import type { Failure, FailureGroup, FailuresOptions } from '@piecework/notifier';
import type { QueueError } from '@piecework/protocol';
import { InvalidOptionError } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import prettyMs from 'pretty-ms';
import { commonFlags } from '../flags/common-flags.js';
import { failuresFlags } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { firstLine } from '../terminal/plain-text.js';
import { type Cell, type Column, columnsOf, plainTable, shortened } from '../terminal/table.js';
import { openPiecework } from './open-piecework.js';

interface FailuresValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  error?: string;
  group: boolean;
  payload: boolean;
  stack: boolean;
  cursor?: string;
}

/** `failures`: what failed in a request; `errors`: the last attempts that failed in a queue. */
export function failureCommands(program: Command): void {
  const failures = program
    .command('failures')
    .argument('<id>')
    .description('show the failed sub-requests of a request');
  addFlags(failures, commonFlags, failuresFlags).action(
    async (id: string, given: Record<string, unknown>) => {
      const values = readFlags<FailuresValues>(given, commonFlags, failuresFlags);
      if (values.group) await showGroups(id, values);
      else await showFailures(id, values);
    },
  );

  const errors = program
    .command('errors')
    .description('show the last 100 attempts that failed in a queue');
  addFlags(errors, commonFlags).action(async (given: Record<string, unknown>) => {
    const values = readFlags<FailuresValues>(given, commonFlags);
    await using pw = await openPiecework(values);
    const found = await pw.admin.errors();
    if (values.json) for (const error of found) console.log(JSON.stringify(error));
    else console.log(plainTable(ERROR_COLUMNS, found.map(errorRow), 'no errors'));
  });
}

const ERROR_COLUMNS: readonly Column[] = [
  { head: 'at' },
  { head: 'request', shrinks: true, isId: true },
  { head: 'index' },
  { head: 'attempt', short: 'try' },
  { head: 'error', shrinks: true },
  { head: 'message', shrinks: true, half: true },
  { head: 'worker', shrinks: true, drops: true },
];

function errorRow({ at, requestId, index, attempt, name, message, worker }: QueueError): Cell[] {
  const time = new Date(at).toISOString();
  const numbers = [String(index), String(attempt)];
  const error = [firstLine(name), firstLine(message)];
  const ago = `${prettyMs(Math.max(0, Date.now() - at), { compact: true })} ago`;
  return [[time, ago], requestId, ...numbers, ...error, worker];
}

const GROUP_COLUMNS: readonly Column[] = [
  { head: 'error', shrinks: true },
  { head: 'count' },
  { head: 'first' },
  { head: 'message of the first', short: 'message', shrinks: true },
];

async function showGroups(id: string, values: FailuresValues): Promise<void> {
  const { error, cursor, payload, json } = values;
  if (error !== undefined) throw new InvalidOptionError('--error', error, 'without --group');
  if (cursor !== undefined) throw new InvalidOptionError('--cursor', cursor, 'without --group');
  if (values.stack) throw new InvalidOptionError('--stack', true, 'without --group');
  await using pw = await openPiecework(values);
  const groups = await pw.request(id).failureGroups();
  if (json) {
    for (const group of groups) console.log(JSON.stringify(shownGroup(group, payload)));
    return;
  }
  const rows = groups.map(({ name, count, example }) => [
    firstLine(name),
    count,
    String(example.index),
    firstLine(example.error.message),
  ]);
  console.log(plainTable(GROUP_COLUMNS, rows, 'no failures'));
}

async function showFailures(id: string, values: FailuresValues): Promise<void> {
  const { error, cursor, payload, json } = values;
  const options: FailuresOptions = {
    payload,
    ...(error === undefined ? {} : { name: error }),
    ...(cursor === undefined ? {} : { cursor }),
  };
  await using pw = await openPiecework(values);
  let none = true;
  for await (const failure of pw.request(id).failures(options)) {
    none = false;
    console.log(json ? JSON.stringify(shown(failure, payload)) : line(failure, payload));
    if (values.stack && !json) console.log(stackOf(failure));
  }
  if (none && !json) console.log('no failures');
}

function shown(failure: Omit<Failure, 'cursor'>, withPayload: boolean) {
  const { payload, ...rest } = failure;
  return withPayload ? { ...rest, payload: payload === undefined ? null : payload } : rest;
}

const shownGroup = ({ name, count, example }: FailureGroup, withPayload: boolean) => ({
  name,
  count,
  example: shown(example, withPayload),
});

/** The stack without its first lines, the message, which was printed before. */
function stackOf({ error }: Failure): string {
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return frames.length > 0
    ? frames.map((frame) => `    ${firstLine(frame)}`).join('\n')
    : '    (no stack was stored)';
}

function line({ index, attempts, crashes, error, payload }: Failure, withPayload: boolean): string {
  const runs = `  (attempts ${attempts}, crashes ${crashes})`;
  const what = `${index}  ${firstLine(error.name)}: ${firstLine(error.message)}`;
  // Payloads are printed whole.
  if (withPayload) return `${what}${runs}  ${JSON.stringify(payload)}`;
  return shortened(what, Math.max(20, columnsOf(process.stdout) - runs.length)) + runs;
}
