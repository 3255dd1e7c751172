import { type Connection, type QueueCommands, redisError } from '@piecework/protocol';
import { type Finding, many, warning } from './finding.js';
import { setting } from './persistence.js';
import type { Server } from './servers.js';

/**
 * Whether the end of what ended requests of this queue keep could hold up a server: the agenda has it unlinked in
 * time, as long as somebody looks at it; what expires all the same is freed on the spot, by default.
 */
export async function checkExpiry(
  connection: Connection,
  queue: QueueCommands,
  servers: readonly Server[],
): Promise<Finding[]> {
  const spent = await connection.client.zcard(queue.keys.spent).catch((thrown: unknown) => {
    throw redisError(thrown, 'doctor');
  });
  if (spent === 0) return [];
  const found: Finding[] = [];
  for (const { name, client } of servers) {
    if ((await setting(client, 'lazyfree-lazy-expire')) !== 'no') continue;
    const what = `${name}: ${many(spent, 'ended request')} of the queue may keep much, and what expires is freed in the midst of its work`;
    const advice =
      'CONFIG SET lazyfree-lazy-expire yes, and write it into the configuration; a running worker removes them before';
    found.push(warning('memory', what, advice));
  }
  return found;
}
