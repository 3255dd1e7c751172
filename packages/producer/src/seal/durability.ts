import {
  backoff,
  type Connection,
  DurabilityError,
  LostError,
  PieceworkError,
  type ProducerCommands,
  pause,
  redisError,
  reopenIfClosed,
  ServerError,
  TIMES,
} from '@piecework/protocol';
import type { Redis } from 'ioredis';
import { type SealOf, type Site, whyGone } from './seal-request.js';

/*
 * Whether a sealed request would survive a crash of its server. Redis answers that with WAIT and WAITAOF, which
 * consider only the writes of their own connection and block it meanwhile. So the seal is repeated, and awaited, on a
 * connection of its own to the server that has the request; and the opening on one to the server of the queue.
 */

export type Durability = 'none' | 'replica' | 'fsync';

/** The connection serves one question, and the client repeats nothing by itself. */
const OPTIONS = {
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  commandTimeout: 2 * TIMES.durabilityMs,
};

async function withClient<T>(
  connection: Connection,
  key: string,
  work: (client: Redis) => Promise<T>,
): Promise<T> {
  let client: Redis | undefined;
  try {
    ({ client } = await connection.openFor(key, OPTIONS));
    await client.connect();
    return await work(client);
  } catch (error) {
    const known = redisError(error, 'durability');
    // A connection of its own follows no redirection: the next one goes where the slot is by then.
    if (known.retryable) await connection.refreshSlots();
    throw known;
  } finally {
    client?.disconnect();
  }
}

/**
 * Checks, before anything is written, whether the server can confirm the durability that is asked for.
 * @throws ServerError NO_REPLICA, NO_FSYNC, which say what to change · ConnectionError
 */
export async function checkDurability(
  connection: Connection,
  commands: ProducerCommands,
  durability: Durability,
): Promise<void> {
  if (durability === 'none') return;
  await withClient(connection, commands.keys.request, async (client) => {
    if (durability === 'replica') {
      if (/^slave\d+:.*state=online/m.test(await client.info('replication'))) return;
      throw new ServerError(
        "durability 'replica': no replica is connected to the server that has this request; add one, or use 'none'",
        { code: 'NO_REPLICA' },
      );
    }
    const [known] = (await client.command('INFO', 'WAITAOF')) as unknown[];
    if (!known) {
      throw new ServerError(
        "durability 'fsync': this server has no WAITAOF, which needs Redis 7.2; upgrade it, or set appendfsync to always and use 'none'",
        { code: 'NO_FSYNC' },
      );
    }
    if (!/^aof_enabled:1/m.test(await client.info('persistence'))) {
      throw new ServerError(
        "durability 'fsync': this server writes no append-only file; set appendonly to yes",
        { code: 'NO_FSYNC' },
      );
    }
    // Waits for nothing; a user without the right fails here and not after the seal.
    await client.call('WAITAOF', 0, 0, 1);
  });
}

/**
 * Waits until a sealed request is as durable as was asked.
 * @throws DurabilityError when that was not confirmed in time · DroppedError · LostError
 */
export async function confirmDurability(
  site: Site,
  seal: SealOf,
  durability: Durability,
): Promise<void> {
  if (durability === 'none') return;
  const { connection, queue, request } = site;
  const { id } = request.keys;
  const { generation, producer, sent } = seal;
  const endMs = performance.now() + TIMES.durabilityMs;
  const waits = backoff(50, 1_000);
  const awaited = async (client: Redis) => {
    // 0 would be for ever.
    const leftMs = Math.max(1, Math.round(endMs - performance.now()));
    if (durability === 'replica') return client.wait(1, leftMs);
    const [local] = (await client.call('WAITAOF', 1, 0, leftMs)) as [number, number];
    return local;
  };
  const sealed = async (client: Redis) => {
    const { verdict } = await request.seal(generation, producer, sent, client);
    if (verdict === 'gone') throw await whyGone(site, generation, producer);
    if (verdict === 'gap') throw new LostError(id, true);
    return awaited(client);
  };
  // A request that the queue side lacks would not be served; one that has ended is no longer needed there.
  const opened = async (client: Redis) => {
    const none = { id, generation, mint: 0, epoch: 0, priority: 0 };
    await reopenIfClosed(queue, request, generation, () => queue.push(none, client));
    return awaited(client);
  };
  const of = (key: string, ask: (client: Redis) => Promise<number>) =>
    withClient(connection, key, ask);
  for (;;) {
    try {
      const both = [await of(request.keys.request, sealed), await of(queue.keys.open, opened)];
      if (Math.min(...both) >= 1) return;
    } catch (error) {
      const again = error instanceof PieceworkError && error.retryable;
      if (!again || error instanceof LostError) throw error;
      const waitMs = waits.next();
      if (performance.now() + waitMs > endMs) throw new DurabilityError(id, durability, error);
      await pause(waitMs);
      continue;
    }
    throw new DurabilityError(id, durability);
  }
}
