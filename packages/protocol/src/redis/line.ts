import type { Redis } from 'ioredis';
import { onAbort } from '../common/abort.js';
import { within } from '../common/waiting.js';
import { ConnectionError } from '../contract/errors.js';
import type { Connection } from './connection.js';

export interface LineEvents {
  readonly onNotice: (channel: string, message: string) => void;
  readonly onLost: (line: Line, error: unknown) => void;
}

const CLOSED = 'the subscribing connection was closed';

/**
 * One subscribing connection to one server. It is used once: the first sign of a loss closes it (the connection closed,
 * the server removed a shard channel because its hash slot moved, a ping had no answer), and `onLost` opens another.
 * ioredis does not reconnect it, because it would not say which channels it failed to subscribe again.
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
      // A longer timer would keep the process from ending.
      disconnectTimeout: 50,
    });
    const line = new Line(client, address !== 'standalone');
    const stop = onAbort(closing, () => client.disconnect());
    try {
      // A disconnect before the first connect would not prevent that connect.
      if (closing.aborted) throw new ConnectionError(CLOSED);
      await client.connect();
    } catch (error) {
      line.close();
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

  /** Resolves when all are subscribed. @throws when one is not: the line must not be used then */
  async subscribe(channels: readonly string[]): Promise<void> {
    await Promise.all(this.#calls(channels).map((one) => this.#client.ssubscribe(...one)));
  }

  unsubscribe(channels: readonly string[]): void {
    // If it fails, the line will be lost anyway; a notice that no caller waits for is ignored.
    for (const one of this.#calls(channels)) this.#client.sunsubscribe(...one).catch(() => {});
  }

  /** Pings the server; without an answer in `withinMs` the line counts as lost. */
  ping(withinMs: number): void {
    const silent = () => {
      throw new ConnectionError('no answer to a ping');
    };
    within(withinMs, this.#client.ping(), silent).catch((error: unknown) => this.lose(error));
  }

  /** Closes the connection without calling `onLost`. */
  close(): void {
    this.#onLost = undefined;
    this.#client.disconnect();
  }

  /** Closes the connection and reports the loss: its channels need another line. */
  lose(error: unknown): void {
    const onLost = this.#onLost;
    this.close();
    onLost?.(this, error);
  }

  /** In a cluster all channels of one call must have the same hash slot. All calls are pipelined. */
  #calls(channels: readonly string[]): string[][] {
    const size = this.#cluster ? 1 : 1_000;
    const calls: string[][] = [];
    for (let i = 0; i < channels.length; i += size) calls.push(channels.slice(i, i + size));
    return calls;
  }
}
