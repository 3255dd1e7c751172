import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, Redis } from 'ioredis';
import { type EmbeddedRedis, startRedis } from 'piecework/embedded';

export type Fsync = 'always' | 'everysec' | 'no';

/** What is attacked, as it is looked at. */
export interface Watched {
  /** Straight to it, past the proxies. */
  readonly client: Redis | Cluster;
  usedMemory(): Promise<number>;
  keys(): AsyncIterable<string[]>;
}

/** The Redis under attack: killed and started again on the same port, with the same data. */
export class AttackedServer implements Watched, AsyncDisposable {
  readonly port: number;
  /** Straight to it, past the proxies. Refuses at once while it is away. */
  readonly client: Redis;
  readonly #dir: string;
  readonly #fsync: Fsync;
  #redis: EmbeddedRedis;

  private constructor(redis: EmbeddedRedis, dir: string, fsync: Fsync) {
    this.#redis = redis;
    this.#dir = dir;
    this.#fsync = fsync;
    this.port = redis.port;
    this.client = new Redis({
      host: '127.0.0.1',
      port: redis.port,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => 100,
    });
    this.client.on('error', () => {});
  }

  static async start(folder: string, fsync: Fsync): Promise<AttackedServer> {
    const dir = join(folder, 'redis');
    return new AttackedServer(await startRedis(settings(dir, fsync)), dir, fsync);
  }

  async kill(): Promise<void> {
    await this.#redis.kill('SIGKILL');
    await this.#redis.ended;
  }

  async startAgain(): Promise<void> {
    const { port } = this;
    this.#redis = await startRedis({ ...settings(this.#dir, this.#fsync), port });
    // The next fault speaks to it over this client, which reconnects in its own time.
    while (this.client.status !== 'ready') await sleep(10);
  }

  /** Bytes that its data and its buffers take. */
  async usedMemory(): Promise<number> {
    return Number(/^used_memory:(\d+)/m.exec(await this.client.info('memory'))?.[1]);
  }

  keys(): AsyncIterable<string[]> {
    return this.client.scanStream({ count: 1_000 }) as AsyncIterable<string[]>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    await this.#redis.stop();
  }
}

function settings(dir: string, fsync: Fsync) {
  return { dir, persistence: 'aof', args: ['--appendfsync', fsync] } as const;
}
