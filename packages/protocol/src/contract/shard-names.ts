import { InvalidOptionError } from './errors.js';
import { type OptionSpec, option } from './options.js';

/** Most shards of one queue: a worker has a blocking connection for each. */
const SHARDS_MAX = 64;
/** Longest name of a queue, including the number of a shard. */
const NAME_MAX = 128;

/** How many shards a queue has. All its users must give the same number. */
export const shardsOption: OptionSpec = option.integer(1, SHARDS_MAX, 1);

/**
 * Names of the shards of a queue: `req.0`, `req.1`, …; with one shard, the name of the queue.
 * @throws InvalidOptionError when the name is too long for a number after it
 */
export function shardNames(queue: string, shards: number): readonly string[] {
  if (shards === 1) return [queue];
  const names = Array.from({ length: shards }, (_, shard) => `${queue}.${shard}`);
  if (names.some(({ length }) => length > NAME_MAX)) {
    const most = NAME_MAX - String(shards - 1).length - 1;
    throw new InvalidOptionError('queue', queue, `with so many shards, at most ${most} characters`);
  }
  return names;
}
