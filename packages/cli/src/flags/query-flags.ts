import { failuresOptions } from '@piecework/notifier/options';
import { option } from '@piecework/protocol/contract';
import { doctorOptions, listOptions, ROLES, runningOptions } from 'piecework/options';
import { custom, type Flag, flag, isText } from './flag.js';

export const resultsFlags: readonly Flag[] = [
  flag(
    '--order <how>',
    'order of the results: index or completion',
    option.word('index', 'completion'),
  ),
  flag('--failed', 'also print failed sub-requests', option.boolean(false), 'switch'),
  flag(
    '--cursor <cursor>',
    'begin after the result of this cursor',
    custom(isText, 'the cursor of a result'),
  ),
];

/** Of `failures` and `redrive`. */
export const indexFlag = flag(
  '--index <list>',
  'only failures with these indexes, separated by commas',
  custom((v) => isText(v) && /^\d{1,15}(,\d{1,15})*$/.test(String(v)), 'indexes like 3,17,20'),
);

/** '3,17' as the option `indexes`; undefined: no option. */
export const indexesOf = (list: string | undefined): { readonly indexes?: readonly number[] } =>
  list === undefined ? {} : { indexes: list.split(',').map(Number) };

export const failuresFlags: readonly Flag[] = [
  indexFlag,
  flag('--error <name>', 'only failures with an error of this name', failuresOptions['name']),
  flag(
    '--group',
    'count the failures by kind: error name and message, with an example of each',
    option.boolean(false),
    'switch',
  ),
  flag('--payload', 'also print the payloads', option.boolean(false), 'switch'),
  flag(
    '--stack',
    'also print the stack of each error; --json always does',
    option.boolean(false),
    'switch',
  ),
  flag('--cursor <cursor>', 'begin after the failure of this cursor', failuresOptions['cursor']),
];

export const statusFlags: readonly Flag[] = [
  flag(
    '--running',
    'also show what runs now, the longest first: where, for how long, with which progress',
    option.boolean(false),
    'switch',
  ),
  flag('--limit <n>', 'with --running: maximum number of rows', runningOptions['limit'], 'number'),
];

export const listFlags: readonly Flag[] = [
  flag('--state <state>', 'which requests: open, ended or all', listOptions['state']),
];

export const watchFlags: readonly Flag[] = [
  flag('--every-ms <ms>', 'time between two updates', option.ms(100, 3_600_000, 1_000), 'number'),
];

export const topFlags: readonly Flag[] = [
  flag(
    '--every-ms <ms>',
    'time between two rounds of reads',
    option.ms(1_000, 3_600_000, 1_000),
    'number',
  ),
  flag('--read-only', 'keys change nothing', option.boolean(false), 'switch'),
];

export const doctorFlags: readonly Flag[] = [
  flag(
    '--deep',
    'also search all keys for requests that the queue has lost',
    doctorOptions['deep'],
    'switch',
  ),
  flag(
    '--repair',
    'first repair: take up requests that the queue has lost, and do what is overdue',
    doctorOptions['repair'],
    'switch',
  ),
  flag(
    '--users <list>',
    'ACL users whose rights are checked: worker=NAME,producer=NAME and so on',
    custom(
      (v) => !namesTwice(String(v)) && doctorOptions['users']?.fits(usersOf(String(v))) === true,
      `role=user with commas between them, each role once; roles: ${ROLES.join(', ')}`,
    ),
  ),
  flag(
    '--slow-ms <ms>',
    'a handler that has run this long is a warning',
    doctorOptions['slowMs'],
    'number',
    'ten times the usual time',
  ),
];

/** 'worker=w,producer=p' as an object. */
export function usersOf(list: string): Record<string, string> {
  return Object.fromEntries(
    list.split(',').map((pair) => {
      const at = pair.indexOf('=');
      return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

/** Whether a role has two users: only the last one would be checked. */
function namesTwice(list: string): boolean {
  return list.split(',').length > Object.keys(usersOf(list)).length;
}
