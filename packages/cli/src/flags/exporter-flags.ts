import { option } from '@piecework/protocol/contract';
import { custom, type Flag, flag, isText } from './flag.js';
import { queuesFlag } from './queue-names.js';

/** Flags of `exporter`. */
export const exporterFlags: readonly Flag[] = [
  flag(
    '--port <n>',
    'port to listen at; 0: a free one',
    option.integer(0, 65_535, 9_465),
    'number',
  ),
  flag(
    '--host <address>',
    'address to listen at; 0.0.0.0: all of this machine',
    custom(isText, 'an address of this machine', '127.0.0.1'),
  ),
  queuesFlag('read'),
  flag(
    '--target-seconds <s>',
    'within how many seconds a scaled fleet should do the work that waits',
    option.integer(1, 86_400, 60),
    'number',
  ),
  flag('--log-level <level>', 'lowest level that is logged on standard error', {
    ...option.word('debug', 'info', 'warn', 'error', 'silent'),
    default: 'info',
  }),
  flag(
    '--log-format <how>',
    'format of log lines',
    { ...option.word('text', 'json'), default: undefined },
    'text',
    'text on a terminal, else json',
  ),
];
