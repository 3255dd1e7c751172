import {
  type Connection,
  hasNotEnded,
  isCluster,
  type Redis,
  readFields,
  redisError,
  requestKeys,
  type Shards,
} from '@piecework/protocol';

/** How many keys the server scans in one step. */
const STEP = 1_000;

const idOf = (key: string) => /\{(.+)\}$/.exec(key)?.[1];

/** A request that has not ended, as its own side knows it. */
export interface UnfinishedRequest {
  readonly id: string;
  readonly generation: number;
  /** The queue that its state names: the queue itself, or one of its shards. */
  readonly queue: string;
}

/**
 * All requests of a queue that have not ended, found by their own keys and not by those of the queue. A request that
 * begins or ends meanwhile may be missed, or be among them. Opening one that has just ended costs a tend, which
 * ends it on the queue side again.
 */
export async function* unfinishedRequests(
  connection: Connection,
  queue: Pick<Shards, 'has'>,
): AsyncGenerator<UnfinishedRequest> {
  const { client } = connection;
  const servers: Redis[] = isCluster(client) ? client.nodes('master') : [client as Redis];
  for (const server of servers) {
    for await (const keys of pagesOf(server)) {
      const states = await Promise.all(
        keys.map((request) => readFields(client, { request }, ['queue', 'status', 'generation'])),
      );
      for (const [i, { queue: of, status, generation }] of states.entries()) {
        const id = idOf(keys[i] as string);
        if (id === undefined || !of || !queue.has(of) || !hasNotEnded(status)) continue;
        yield { id, generation: Number(generation), queue: of };
      }
    }
  }
}

/** The state keys of a server, in pages; a key may come twice. */
async function* pagesOf(server: Redis): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const [next, keys] = await server
      .scan(cursor, 'MATCH', requestKeys('*').request, 'COUNT', STEP)
      .catch((error: unknown) => {
        throw redisError(error, 'scan');
      });
    cursor = next;
    yield keys;
  } while (cursor !== '0');
}
