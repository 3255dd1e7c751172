import { type Connection, type QueueCommands, redisError } from '@piecework/protocol';
import { type Finding, many, warning } from '../finding.js';
import { isOfDev, setting } from '../servers/persistence.js';
import type { Server } from '../servers/servers.js';

/**
 * Checks whether freeing what ended requests keep could block a server. The agenda unlinks it in time while somebody
 * ticks it; otherwise it expires, and by default Redis then frees it on the spot.
 */
export async function checkExpiry(
  connection: Connection,
  queue: QueueCommands,
  servers: readonly Server[],
): Promise<Finding[]> {
  const spent = await connection.client.zcard(queue.keys.spent).catch((thrown: unknown) => {
    throw redisError(thrown, 'doctor');
  });
  // cure: the doctor reports keys that expire while the server works
  if (spent === 0) return [];
  const found: Finding[] = [];
  for (const { name, client } of servers) {
    if ((await setting(client, 'lazyfree-lazy-expire')) !== 'no' || (await isOfDev(client)))
      continue;
    const what = `${name}: ${many(spent, 'ended request')} of the queue may keep much data, and what expires blocks the server while it is freed`;
    const advice =
      'CONFIG SET lazyfree-lazy-expire yes, and write it into the configuration; a running worker removes the data before it expires';
    found.push(warning('memory', what, advice));
  }
  return found;
}
