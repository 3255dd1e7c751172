import {
  type Connection,
  DroppedError,
  DurabilityError,
  PieceworkError,
  type RequestCommands,
  redisError,
  ServerError,
  TIMES,
} from '@piecework/protocol';
import type { Redis } from 'ioredis';

/*
 * Whether a sealed request would outlive a crash of its server. Redis tells by WAIT and WAITAOF, which
 * look at the writes of their own connection only and hold it up meanwhile: so the seal is repeated,
 * and awaited, on a connection of its own to the server that holds the request.
 */

export type Durability = 'none' | 'replica' | 'fsync';

/** The connection lives for one question; nothing is sent again behind our back. */
const OPTIONS = {
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  commandTimeout: 2 * TIMES.durabilityMs,
};

async function withClient<T>(
  connection: Connection,
  { keys }: RequestCommands,
  work: (client: Redis) => Promise<T>,
): Promise<T> {
  const { client } = await connection.openFor(keys.request, OPTIONS);
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    throw redisError(error, 'durability');
  } finally {
    client.disconnect();
  }
}

/**
 * Looks, before anything is written, whether the server can confirm what is asked.
 * @throws ServerError NO_REPLICA, NO_FSYNC, which say what to change · ConnectionError
 */
export async function checkDurability(
  connection: Connection,
  commands: RequestCommands,
  durability: Durability,
): Promise<void> {
  if (durability === 'none') return;
  await withClient(connection, commands, async (client) => {
    if (durability === 'replica') {
      if (/^slave\d+:.*state=online/m.test(await client.info('replication'))) return;
      throw new ServerError(
        "durability 'replica': no replica is connected to the server that holds this request: add one, or ask for 'none'",
        { code: 'NO_REPLICA' },
      );
    }
    const [known] = (await client.command('INFO', 'WAITAOF')) as unknown[];
    if (!known) {
      throw new ServerError(
        "durability 'fsync': this server has no WAITAOF: Redis 7.2 or newer is needed; before it, set appendfsync to always and ask for 'none'",
        { code: 'NO_FSYNC' },
      );
    }
    if (/^aof_enabled:1/m.test(await client.info('persistence'))) return;
    throw new ServerError("durability 'fsync': this server writes no file: set appendonly to yes", {
      code: 'NO_FSYNC',
    });
  });
}

/**
 * Waits until a sealed request is as durable as was asked.
 * @throws DurabilityError when that was not confirmed in time · DroppedError
 */
export async function confirmDurability(
  connection: Connection,
  commands: RequestCommands,
  seal: { generation: number; producer: string; sent: number },
  durability: Durability,
): Promise<void> {
  if (durability === 'none') return;
  const { id } = commands.keys;
  const confirmed = await withClient(connection, commands, async (client) => {
    const { verdict } = await commands.seal(seal.generation, seal.producer, seal.sent, client);
    if (verdict === 'gone') throw new DroppedError(id);
    if (durability === 'replica') return client.wait(1, TIMES.durabilityMs);
    const [local] = (await client.call('WAITAOF', 1, 0, TIMES.durabilityMs)) as [number, number];
    return local;
  }).catch((error: unknown) => {
    if (error instanceof PieceworkError && !error.retryable) throw error;
    throw new DurabilityError(id, durability, error);
  });
  if (confirmed < 1) throw new DurabilityError(id, durability);
}
