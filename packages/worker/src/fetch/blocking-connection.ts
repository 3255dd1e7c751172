import { type Connection, pause, redisError, ServerError } from '@piecework/protocol';
import type { Redis } from 'ioredis';
import type { Unblocking } from '../shared/unblocking.js';

/** How often a pop is unblocked before its connection is cut, and the longest time between, in ms. */
const UNBLOCKS = 40;
const UNBLOCK_MS = 25;
/** How long a server that no longer has the slot may take to answer that. */
const MOVED_MS = 1_000;

/**
 * Options of a connection that is thrown away when it fails: the reconnect of ioredis would send a pop again, or
 * leave it running on the server, where it takes the next token.
 */
export const DISPOSABLE = {
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  enableOfflineQueue: true,
  autoResubscribe: false,
  disconnectTimeout: 50,
};

/** How long the server may take to answer a call before the client gives up the call, or the connection; in ms. */
export function longestAnswerMs({ options }: Redis): number {
  const given = [options.commandTimeout, options.socketTimeout].filter((ms) => ms !== undefined);
  return Math.min(...given.filter((ms) => ms > 0));
}

/** The connection on which a token fetcher waits: to the server that has the hash slot of its queue. */
export class BlockingConnection {
  readonly #connection: Connection;
  readonly #unblocking: Unblocking;
  /** A key of the queue. */
  readonly #key: string;
  #client: Redis | undefined;
  /** The one that is being made, or was made last. */
  #opened: Redis | undefined;
  /** undefined: the server does not tell it, as without the command or the right; pops are cut off then. */
  #clientId: number | undefined;
  #address = '';

  constructor(connection: Connection, unblocking: Unblocking, key: string) {
    this.#connection = connection;
    this.#unblocking = unblocking;
    this.#key = key;
  }

  get client(): Redis | undefined {
    return this.#client;
  }

  async connect(): Promise<Redis> {
    const { client, address } = await this.#connection.openFor(this.#key, DISPOSABLE);
    this.#opened = client;
    let said: unknown;
    const note = (error: unknown) => {
      said ??= error;
    };
    client.on('error', note);
    try {
      await client.connect();
      this.#clientId = await idOf(client);
    } catch (error) {
      client.disconnect();
      // ioredis rejects with 'Connection is closed', whatever the server said before, as that the password is wrong.
      // cure: a worker whose password is refused says so
      throw said ?? error;
    } finally {
      client.off('error', note);
    }
    this.#address = address;
    this.#client = client;
    return client;
  }

  /** Drops the connection; `connect` makes another. */
  drop(): void {
    this.#opened?.disconnect();
    this.#client = undefined;
  }

  /** Calls that wait for a server that may hang fail. */
  cutUnblocking(): void {
    this.#unblocking.cut(this.#address);
  }

  /** The slots of the cluster were read anew: leaves a server that no longer has the slot and does not answer so. */
  leaveIfMoved(signal: AbortSignal): void {
    const client = this.#client;
    const isElsewhere = () => {
      const known = this.#connection.knownAddressOf(this.#key);
      return this.#client === client && known !== undefined && known !== this.#address;
    };
    if (!client || !isElsewhere()) return;
    void pause(MOVED_MS, signal).then(() => {
      if (isElsewhere()) client.disconnect();
    });
  }

  /**
   * Ends the pop under way from a second connection, so that a token that it pops in that moment is still received.
   * Repeats this until `ended`: at first the pop may not have reached the server, and nothing is blocked there.
   */
  async unblock(ended: AbortSignal): Promise<void> {
    const blocked = this.#client;
    if (!blocked) return;
    const id = this.#clientId;
    if (id === undefined) return blocked.disconnect();
    const control = this.#unblocking.to(this.#address, blocked);
    try {
      for (let i = 0; i < UNBLOCKS && !ended.aborted; i += 1) {
        await control.client('UNBLOCK', id);
        await pause(Math.min(2 ** i, UNBLOCK_MS), ended);
      }
    } catch {
      // Then the pop is cut off instead; the epochs show that a token it took along is lost.
    } finally {
      this.#unblocking.done(control);
    }
    if (!ended.aborted) blocked.disconnect();
  }
}

async function idOf(client: Redis): Promise<number | undefined> {
  try {
    return Number(await client.client('ID'));
  } catch (thrown) {
    const error = redisError(thrown, 'wait for work');
    if (error instanceof ServerError && error.code === 'NO_RIGHT') return undefined;
    throw error;
  }
}
