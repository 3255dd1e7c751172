import { type Connection, type QueueCommands, redisError, type Shards } from '@piecework/protocol';
import { unfinishedRequests } from '../../unfinished-scan.js';
import { error, type Finding, ok, some } from '../finding.js';
import { isUnfinished } from './books.js';
import { readSnapshots } from './request-snapshot.js';

/** Ids that are compared in one round trip. */
const PAGE = 500;

/** Checks for unfinished requests that the queue's side does not know. Scans all keys, some at a time. */
export async function checkOrphans(connection: Connection, shards: Shards): Promise<Finding> {
  const suspects = new Map<QueueCommands, Set<string>>(
    shards.all.map((queue) => [queue, new Set()]),
  );
  const pages = new Map<QueueCommands, string[]>();
  const ask = async (queue: QueueCommands, page: readonly string[]) => {
    for (const lost of await unknown(connection, queue, page)) suspects.get(queue)?.add(lost);
  };
  for await (const { id, queue: of } of unfinishedRequests(connection, shards)) {
    const queue = shards.named(of);
    const page = pages.get(queue) ?? [];
    page.push(id);
    pages.set(queue, page.length < PAGE ? page : []);
    if (page.length >= PAGE) await ask(queue, page);
  }
  for (const [queue, page] of pages) await ask(queue, page);
  // A request that has ended meanwhile is no orphan; one that begins is opened before it is created.
  const lost: string[] = [];
  for (const [queue, ids] of suspects) {
    for await (const seen of readSnapshots(connection, queue.keys, ids, 0)) {
      const unopened = seen.filter(
        (snapshot) => snapshot.open === undefined && isUnfinished(snapshot),
      );
      lost.push(...unopened.map(({ id }) => id));
    }
  }
  if (lost.length === 0) return ok('orphans', 'the queue knows every unfinished request');
  const what = `the queue does not know ${some(lost)}: no worker runs them`;
  return error('orphans', what, 'run `piecework doctor --repair`, which opens them again');
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
