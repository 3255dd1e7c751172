import { Redis } from 'ioredis';
import type { Fsync, Watched as Read } from '../attacked/server.js';
import { startWatched, type Watched } from './watched.js';

/** The servers under attack: a master and two replicas, behind three Sentinels. */
export class AttackedSentinels implements Read, AsyncDisposable {
  readonly watched: Watched;
  /** As `REDIS_URL` has it. */
  readonly url: string;
  readonly client: Redis;

  private constructor(watched: Watched) {
    this.watched = watched;
    const { sentinels, name } = watched.input;
    const hosts = sentinels.map(({ host, port }) => `${host}:${port}`);
    this.url = `redis-sentinel://${hosts.join()}/${name}`;
    this.client = new Redis(watched.input);
    this.client.on('error', () => {});
  }

  static async start(fsync: Fsync): Promise<AttackedSentinels> {
    const args = ['--appendfsync', fsync, '--repl-diskless-sync-delay', '0'];
    return new AttackedSentinels(await startWatched({ replicas: 2, sentinels: 3, args }));
  }

  async masters(): Promise<Redis[]> {
    return [this.client];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    await this.watched[Symbol.asyncDispose]();
  }
}
