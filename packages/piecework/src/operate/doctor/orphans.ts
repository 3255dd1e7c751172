import { type Connection, type QueueCommands, redisError, type Shards } from '@piecework/protocol';
import { livingRequests } from '../unfinished-scan.js';
import { isLiving } from './books.js';
import { error, type Finding, ok, some } from './finding.js';
import { looksAt } from './request-look.js';

/** Ids that are compared in one round trip. */
const PAGE = 500;

/** Living requests that the queue's side does not know. Goes through all keys, some at a time. */
export async function checkOrphans(connection: Connection, shards: Shards): Promise<Finding> {
  const suspects = new Map<QueueCommands, Set<string>>(
    shards.all.map((queue) => [queue, new Set()]),
  );
  const pages = new Map<QueueCommands, string[]>();
  const ask = async (queue: QueueCommands, page: readonly string[]) => {
    for (const lost of await unknown(connection, queue, page)) suspects.get(queue)?.add(lost);
  };
  for await (const { id, queue: of } of livingRequests(connection, shards)) {
    const queue = shards.named(of);
    const page = pages.get(queue) ?? [];
    page.push(id);
    pages.set(queue, page.length < PAGE ? page : []);
    if (page.length >= PAGE) await ask(queue, page);
  }
  for (const [queue, page] of pages) await ask(queue, page);
  // One that ended meanwhile was found alive; one that begins is open first.
  const lost: string[] = [];
  for (const [queue, ids] of suspects) {
    for await (const seen of looksAt(connection, queue.keys, ids, 0)) {
      const unopened = seen.filter((look) => look.open === undefined && isLiving(look));
      lost.push(...unopened.map(({ id }) => id));
    }
  }
  if (lost.length === 0) return ok('orphans', 'the queue knows every living request');
  const what = `the queue does not know ${some(lost)}: nobody works at them`;
  return error('orphans', what, '`piecework doctor --repair` has them looked at again');
}

async function unknown(
  { client }: Connection,
  { keys }: QueueCommands,
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return [];
  const open = await client.hmget(keys.open, ...ids).catch((thrown: unknown) => {
    throw redisError(thrown, 'doctor');
  });
  return ids.filter((_, i) => open[i] === null);
}
