import { option } from '@piecework/protocol/contract';
import { custom, type Flag, flag, isText } from './flag.js';

/** Where a command listens. */
export const listenFlags = (port: number): readonly Flag[] => [
  flag('--port <n>', 'port to listen at; 0: a free one', option.integer(0, 65_535, port), 'number'),
  flag(
    '--host <address>',
    'address to listen at; 0.0.0.0: all of this machine',
    custom(isText, 'an address of this machine', '127.0.0.1'),
  ),
];

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** What a command logs, and how. */
export const logFlags: readonly Flag[] = [
  flag('--log-level <level>', 'lowest level that is logged on standard error', {
    ...option.word(...LOG_LEVELS),
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
