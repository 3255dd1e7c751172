import type { Failure, FailureGroup } from '@piecework/notifier';
import type { QueueError } from '@piecework/protocol';
import { JsonText, shownText } from '@piecework/protocol/contract';
import prettyMs from 'pretty-ms';
import { oneLine } from '../json/json-parts.js';
import { firstLine } from '../terminal/print.js';
import { type Cell, type Column, columnsOf, plainTable, shortened } from '../terminal/table.js';

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
  const error = [shownText(name), firstLine(message)];
  const ago = `${prettyMs(Math.max(0, Date.now() - at), { compact: true })} ago`;
  return [[time, ago], requestId, ...numbers, ...error, worker];
}

/** The table of `errors`. */
export const errorTable = (errors: readonly QueueError[]): string =>
  plainTable(ERROR_COLUMNS, errors.map(errorRow), 'no errors');

const GROUP_COLUMNS: readonly Column[] = [
  { head: 'error', shrinks: true },
  { head: 'count' },
  { head: 'first' },
  { head: 'message of the first', short: 'message', shrinks: true },
];

/** The table of `failures --group`. */
export function groupTable(groups: readonly FailureGroup[]): string {
  const rows = groups.map(({ name, message, count, example }) => [
    shownText(name),
    count,
    String(example.index),
    firstLine(message),
  ]);
  return plainTable(GROUP_COLUMNS, rows, 'no failures');
}

/** The lines of the stack without its first ones, the message, which was printed before. */
export function stackOf({ error }: Failure): string[] {
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return frames.length > 0
    ? frames.map((frame) => `    ${firstLine(frame)}`)
    : ['    (no stack was stored)'];
}

export function failureLine(
  { index, attempts, crashes, error, payload }: Failure,
  withPayload: boolean,
): string {
  const runs = `  (attempts ${attempts}, crashes ${crashes})`;
  const what = `${index}  ${shownText(error.name)}: ${firstLine(error.message)}`;
  // Payloads are printed whole.
  if (withPayload) return `${what}${runs}  ${payload instanceof JsonText ? oneLine(payload) : ''}`;
  return shortened(what, Math.max(20, columnsOf(process.stdout) - runs.length)) + runs;
}
