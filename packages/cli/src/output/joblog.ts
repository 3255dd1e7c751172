import { constants } from 'node:os';
import type { ResultItem } from '@piecework/notifier';
import type { KeptError } from '@piecework/protocol';
import type { ResultWriter } from './result-format.js';

/** The first line of `--joblog`. Columns that GNU parallel has too have the same names. */
const HEAD = [
  ...['Index', 'Worker', 'Starttime', 'JobRuntime', 'Attempts', 'Exitval', 'Signal'],
].join('\t');

/** One sub-request as a line of `--joblog`: times in seconds; '' where a crash left them unknown. */
export function joblogLine(item: ResultItem<unknown>): string {
  const { index, timing } = item;
  const seconds = (ms: number | undefined) => (ms === undefined ? '' : (ms / 1_000).toFixed(3));
  const [exitval, signal] = item.status === 'succeeded' ? [0, 0] : endOf(item.error);
  const worker = timing?.worker ?? (item.status === 'failed' ? item.error.worker : undefined) ?? '';
  const ran = [seconds(timing?.startedAt), seconds(timing?.durationMs), timing?.attempt ?? ''];
  return [index, worker, ...ran, exitval, signal].join('\t');
}

const TIMED_OUT: [number, number] = [-1, constants.signals.SIGTERM];
const UNKNOWN: [number, number] = [-1, 0];

/**
 * Exit value and signal as in GNU parallel: those of the program, or of the worker that ended; 1 and 0 for a handler
 * that threw; -1 and SIGTERM for an attempt that took too long; -1 and 0 for a worker whose end nobody saw.
 */
function endOf({ name, code, message, exitCode, signal }: KeptError): [number, number] {
  if (code === 'TIMEOUT' && message.startsWith('attempt ')) return TIMED_OUT;
  const [, exited, ended] =
    name === 'ExitError' ? (/^(?:exit code (\d+)|ended by (SIG\w+))/.exec(message) ?? []) : [];
  const by = ended ?? signal;
  if (by !== undefined) return [0, constants.signals[by as NodeJS.Signals] ?? 0];
  if (name === 'CrashError' && exitCode === undefined) return UNKNOWN;
  return [Number(exited ?? exitCode ?? 1), 0];
}

export const joblogWriter: ResultWriter = { head: HEAD, line: joblogLine };
