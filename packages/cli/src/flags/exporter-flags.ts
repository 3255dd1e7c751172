import { option } from '@piecework/protocol/contract';
import { type Flag, flag } from './flag.js';
import { queuesFlag } from './queue-names.js';
import { listenFlags, logFlags } from './server-flags.js';

/** Flags of `exporter`. */
export const exporterFlags: readonly Flag[] = [
  ...listenFlags(9_465),
  queuesFlag('read'),
  flag(
    '--target-seconds <s>',
    'within how many seconds a scaled fleet should do the work that waits',
    option.integer(1, 86_400, 60),
    'number',
  ),
  ...logFlags,
];
