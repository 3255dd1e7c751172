import { type Connection, redisError, requestKeys, type Shards } from '@piecework/protocol';
import { Cluster, type Redis } from 'ioredis';

/** How many keys the server looks at in one step. */
const STEP = 1_000;

const LIVING = new Set(['open', 'sealed', 'cancelling']);

const idOf = (key: string) => /\{(.+)\}$/.exec(key)?.[1];

/** A request that has not ended, as its own side shows it. */
export interface LivingRequest {
  readonly id: string;
  readonly generation: number;
  /** The queue that its state names: that, or one of its shards. */
  readonly queue: string;
}

/**
 * All requests of a queue that have not ended, found by their own keys and not by what the queue
 * knows. One that begins or ends meanwhile may be missed, or be among them: to open one that has
 * just ended costs a look, which ends it on the queue side a second time.
 */
export async function* livingRequests(
  connection: Connection,
  queue: Pick<Shards, 'has'>,
): AsyncGenerator<LivingRequest> {
  const { client } = connection;
  const servers: Redis[] = client instanceof Cluster ? client.nodes('master') : [client as Redis];
  for (const server of servers) {
    for await (const keys of pagesOf(server)) {
      const states = await Promise.all(
        keys.map((key) => client.hmget(key, 'queue', 'status', 'generation')),
      ).catch((error: unknown) => {
        throw redisError(error, 'read the requests');
      });
      for (const [i, [of, status, generation]] of states.entries()) {
        const id = idOf(keys[i] as string);
        if (id === undefined || !of || !queue.has(of) || !LIVING.has(String(status))) continue;
        yield { id, generation: Number(generation), queue: of };
      }
    }
  }
}

/** The state keys of a server; the same one may come twice. */
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
