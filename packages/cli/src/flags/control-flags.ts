import { failuresOptions } from '@piecework/notifier/options';
import { type OptionSpec, option } from '@piecework/protocol/contract';
import { pauseQueueOptions, updateOptions } from 'piecework/options';
import { custom, type Flag, flag, isText, orNone } from './flag.js';
import { indexFlag } from './query-flags.js';

export const redriveFlags: readonly Flag[] = [
  indexFlag,
  flag('--error <name>', 'only failures with an error of this name', failuresOptions['name']),
];

export const queueWideFlag = flag(
  '--queue-wide',
  'the whole queue instead of one request',
  option.boolean(false),
  'switch',
);

export const pauseFlags: readonly Flag[] = [
  queueWideFlag,
  flag(
    '--for-ms <ms>',
    'with --queue-wide: how long the pause lasts',
    { ...pauseQueueOptions['forMs'], default: undefined } as OptionSpec,
    'number',
    'until it is resumed',
  ),
];

export const updateFlags: readonly Flag[] = [
  flag(
    '--limit <n>',
    'maximum number of sub-requests that run at once, or none',
    orNone(updateOptions['limit']),
    'number or none',
  ),
  flag(
    '--priority <n>',
    'from 0 (served first) to 99 (served last)',
    updateOptions['priority'],
    'number',
  ),
  flag(
    '--tolerated-failures <n>',
    'number of sub-requests that may fail in a request that succeeds',
    updateOptions['toleratedFailures'],
    'number',
  ),
];

export const devFlags: readonly Flag[] = [
  flag(
    '--port <n>',
    'port of the server on 127.0.0.1',
    option.integer(1, 65_535),
    'number',
    'a free one',
  ),
  flag(
    '--dir <folder>',
    'folder for the data, which then stays when the server ends',
    custom(isText, 'a folder'),
    'text',
    'a private one that is removed',
  ),
  flag(
    '--cluster',
    'a Redis Cluster of six nodes; not safe where the machine has other users',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--dashboard',
    'also serve the dashboard (the package @piecework/dashboard), with an example: a small fleet that works on requests',
    option.boolean(false),
    'switch',
  ),
  flag(
    '--dashboard-port <n>',
    'with --dashboard: its port on 127.0.0.1; 0: a free one',
    option.integer(0, 65_535),
    'number',
    '4000',
  ),
];

/** Of `submit` and `redrive`. */
export const waitFlag = flag(
  '--wait',
  'wait for the completion; the exit code is 0 if the request succeeded, else 1',
  option.boolean(false),
  'switch',
);
