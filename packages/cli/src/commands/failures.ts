import type { Failure, FailureGroup, FailuresOptions } from '@piecework/notifier';
import { InvalidOptionError, knownJson } from '@piecework/protocol/contract';
import type { Command } from 'commander';
import { commonFlags } from '../flags/common-flags.js';
import { failuresFlags, indexesOf } from '../flags/query-flags.js';
import { addFlags, readFlags } from '../flags/read-flags.js';
import { objectLine } from '../json/json-parts.js';
import { print, printTable } from '../terminal/print.js';
import { openPiecework } from './open-piecework.js';

interface FailuresValues {
  redis?: string;
  queue: string;
  shards: number;
  json: boolean;
  index?: string;
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
    if (values.json) {
      for (const error of found) print(JSON.stringify(error));
      return;
    }
    const { errorTable } = await import('../output/failure-text.js');
    printTable(errorTable(found));
  });
}

async function showGroups(id: string, values: FailuresValues): Promise<void> {
  const { index, error, cursor, payload, json } = values;
  if (index !== undefined) throw new InvalidOptionError('--index', index, 'without --group');
  if (error !== undefined) throw new InvalidOptionError('--error', error, 'without --group');
  if (cursor !== undefined) throw new InvalidOptionError('--cursor', cursor, 'without --group');
  if (values.stack) throw new InvalidOptionError('--stack', true, 'without --group');
  await using pw = await openPiecework(values);
  const groups = await pw.request(id).failureGroups({ jsonText: true });
  if (json) {
    for (const group of groups) print(groupLine(group, payload));
    return;
  }
  const { groupTable } = await import('../output/failure-text.js');
  printTable(groupTable(groups));
}

async function showFailures(id: string, values: FailuresValues): Promise<void> {
  const { index, error, cursor, payload, json } = values;
  const options: FailuresOptions = {
    payload,
    jsonText: true,
    ...indexesOf(index),
    ...(error === undefined ? {} : { name: error }),
    ...(cursor === undefined ? {} : { cursor }),
  };
  await using pw = await openPiecework(values);
  const { failureLine, stackOf } = await import('../output/failure-text.js');
  let none = true;
  for await (const failure of pw.request(id).failures(options)) {
    none = false;
    print(json ? objectLine(shown(failure, payload)) : failureLine(failure, payload));
    if (values.stack && !json) print(...stackOf(failure));
  }
  if (!none || json) return;
  if (index !== undefined || error !== undefined) {
    print('no such failures');
    return;
  }
  const { counts, endReason } = await pw.request(id).status();
  const why = endReason ? ` (${endReason})` : '';
  const others = counts.cancelled > 0 ? `; ${counts.cancelled} were cancelled${why}` : '';
  print(`no failures${others}`);
}

function shown(failure: Omit<Failure, 'cursor'>, withPayload: boolean) {
  const { payload, ...rest } = failure;
  return withPayload ? { ...rest, payload: payload === undefined ? null : payload } : rest;
}

const groupLine = ({ name, message, count, example }: FailureGroup, withPayload: boolean) =>
  objectLine({
    ...{ name, message, count },
    example: knownJson(objectLine(shown(example, withPayload))),
  });
