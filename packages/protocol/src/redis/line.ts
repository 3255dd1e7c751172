import type { Redis } from 'ioredis';
import { onAbort } from '../common/abort.js';
import { ConnectionError } from '../contract/errors.js';
import type { Connection } from './connection.js';

export interface LineEvents {
  readonly onNotice: (channel: string, message: string) => void;
  readonly onLost: (line: Line, error: unknown) => void;
}

const CLOSED = 'the subscribing connection was closed';

/**
 * One subscribing connection to one server. It lives once: the first sign that something was lost
 * (a close, a shard channel that the server took away because its hash slot moved, a ping without
 * an answer) ends it, and `onLost` builds another. ioredis' own reconnecting is off, because it
 * does not say which channels it could not subscribe again.
 */
export class Line {
  readonly #client: Redis;
  readonly #cluster: boolean;
  #onLost: LineEvents['onLost'] | undefined;

  private constructor(client: Redis, cluster: boolean) {
    this.#client = client;
    this.#cluster = cluster;
  }

  /**
   * Connects to the server at `address`, as `Connection` names it; gives up when `closing` aborts.
   * @throws what ioredis throws, when it cannot
   */
  static async open(
    connection: Connection,
    address: string,
    { onNotice, onLost }: LineEvents,
    closing: AbortSignal,
    connectionName: string,
  ): Promise<Line> {
    const client = connection.openAt(address, {
      connectionName,
      retryStrategy: null,
      autoResubscribe: false,
      maxRetriesPerRequest: 0,
      // Its timer would keep a process from ending for so long.
      disconnectTimeout: 50,
    });
    const line = new Line(client, address !== 'standalone');
    const stop = onAbort(closing, () => client.disconnect());
    try {
      // Giving up a client that was never connected would not keep it from connecting.
      if (closing.aborted) throw new ConnectionError(CLOSED);
      await client.connect();
    } catch (error) {
      line.end();
      throw error;
    } finally {
      stop();
    }
    if (client.status !== 'ready') throw new ConnectionError(CLOSED);
    client.on('close', () => line.lose(new ConnectionError(CLOSED)));
    client.on('moved', () =>
      line.lose(new ConnectionError('a shard channel moved to another server')),
    );
    client.on('smessage', onNotice);
    line.#onLost = onLost;
    return line;
  }

  /** Resolves when all are subscribed. @throws when one is not: the line is of no use then */
  async subscribe(channels: readonly string[]): Promise<void> {
    await Promise.all(this.#calls(channels).map((one) => this.#client.ssubscribe(...one)));
  }

  unsubscribe(channels: readonly string[]): void {
    // Failing, it is about to be lost anyway, and a notice that nobody awaits is passed over.
    for (const one of this.#calls(channels)) this.#client.sunsubscribe(...one).catch(() => {});
  }

  /** Asks for a sign of life; without one in `withinMs` the line counts as lost. */
  ping(withinMs: number): void {
    const timer = setTimeout(() => this.lose(new ConnectionError('no answer to a ping')), withinMs);
    this.#client.ping().then(
      () => clearTimeout(timer),
      (error: unknown) => {
        clearTimeout(timer);
        this.lose(error);
      },
    );
  }

  /** Closes without a word. */
  end(): void {
    this.#onLost = undefined;
    this.#client.disconnect();
  }

  /** Ends it as lost: what it carried has to be carried by another. */
  lose(error: unknown): void {
    const tell = this.#onLost;
    this.end();
    tell?.(this, error);
  }

  /** In a cluster all channels of one call have to be of one hash slot. All calls are pipelined. */
  #calls(channels: readonly string[]): string[][] {
    const size = this.#cluster ? 1 : 1_000;
    const calls: string[][] = [];
    for (let i = 0; i < channels.length; i += size) calls.push(channels.slice(i, i + size));
    return calls;
  }
}
