import { option } from '@piecework/protocol/contract';
import { custom, type Flag, flag, isText } from './flag.js';

export const outFlags: readonly Flag[] = [
  flag(
    '--out <file>',
    'file for the results, in the order of the input, which is replaced if it is there; - for standard output',
    custom(isText, 'a file name or -'),
  ),
  flag(
    '--format <how>',
    'format of --out: ndjson (default), text (only the values of what succeeded, one a line) or csv (for spreadsheets: a text that would be a formula begins with a single quote)',
    { ...option.word('ndjson', 'text', 'csv'), default: undefined },
  ),
];

/** Flags of `run`. */
export const runFlags: readonly Flag[] = [
  flag(
    '-j, --jobs <n>',
    'number of sub-requests that run at once: slots, spread over worker processes',
    option.integer(1, 100_000),
    'number',
  ),
  flag(
    '--out-dir <dir>',
    'new or empty folder for what succeeded, failed and is pending at the end: the last two as files that the same flags read as --input again, and manifest.json',
    custom((v) => isText(v) && v !== '-', 'a folder'),
  ),
  flag(
    '--joblog <file>',
    'file for one line for each sub-request that ended: worker, start, duration, attempts, exit code',
    custom((v) => isText(v) && v !== '-', 'a file name'),
  ),
  flag(
    '--resume',
    'with --id: continue an earlier run, or fail if there is none',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--retry-failed',
    'as --resume, and run the failures of a run that has ended again',
    option.boolean(false),
    'switch',
  ),
];
