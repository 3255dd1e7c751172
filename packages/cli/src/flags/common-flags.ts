import { isRedisUrl, option } from '@piecework/protocol/contract';
import { workerOptions } from '@piecework/worker/options';
import { custom, type Flag, flag, isText } from './flag.js';

/** Flags of every command. */
export const commonFlags: readonly Flag[] = [
  flag('--redis <url>', 'URL of Redis; without it, the environment variable REDIS_URL', {
    ...custom(
      (v) => isText(v) && isRedisUrl(String(v)),
      'redis://HOST:PORT/DB (DB: a number), rediss://…, a socket path, URLs of cluster nodes with commas between them, or redis-sentinel://HOST,HOST/NAME',
    ),
    isSecret: true,
  }),
  flag('--queue <name>', 'name of the queue', workerOptions['queue']),
  flag(
    '--shards <n>',
    'number of shards of the queue: the same for every command and program that uses it',
    workerOptions['shards'],
    'number',
  ),
  flag(
    '--no-color',
    'no colours, as with NO_COLOR in the environment',
    option.boolean(false),
    'switch',
  ),
  flag('--json', 'machine-readable output, one JSON value a line', option.boolean(false), 'switch'),
];
