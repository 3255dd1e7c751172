import { backoff, type Connection, pause } from '@piecework/protocol';
import type { Redis } from 'ioredis';

/**
 * Subscriptions to shard channels, over one connection per server however many channels there are.
 *
 * A connection that ends is not repaired but replaced: its channels are subscribed anew, perhaps at
 * another server, and reported as doubtful, because a message may have gone by in between. Pub/sub
 * promises nothing, so whoever listens here reads the truth elsewhere.
 */

const OPTIONS = {
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  autoResubscribe: false,
  disconnectTimeout: 50,
};

/** Channels of one SSUBSCRIBE. */
const BATCH = 500;

interface Link {
  readonly address: string;
  readonly client: Promise<Redis>;
  readonly channels: Set<string>;
  pending: string[];
  flush: Promise<void> | undefined;
}

export class Subscriber {
  readonly #connection: Connection;
  readonly #onMessage: (channel: string) => void;
  readonly #onDoubt: (channels: readonly string[]) => void;
  readonly #links = new Map<string, Link>();
  readonly #wanted = new Set<string>();
  readonly #closing = new AbortController();

  constructor(
    connection: Connection,
    hooks: { onMessage: (channel: string) => void; onDoubt: (channels: readonly string[]) => void },
  ) {
    this.#connection = connection;
    this.#onMessage = hooks.onMessage;
    this.#onDoubt = hooks.onDoubt;
  }

  /** Resolves when the subscription is active, or given up. Tries until then. */
  async add(channel: string): Promise<void> {
    this.#wanted.add(channel);
    const waits = backoff(50, 2_000);
    while (this.#wanted.has(channel) && !this.#closing.signal.aborted) {
      try {
        const address = await this.#connection.addressOf(channel);
        await this.#subscribe(this.#links.get(address) ?? this.#open(address, channel), channel);
        return;
      } catch {
        await pause(waits.next(), this.#closing.signal);
      }
    }
  }

  remove(channel: string): void {
    this.#wanted.delete(channel);
    for (const link of this.#links.values()) {
      if (!link.channels.delete(channel)) continue;
      void link.client.then((client) => client.sunsubscribe(channel)).catch(() => {});
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wanted.clear();
    const links = [...this.#links.values()];
    this.#links.clear();
    await Promise.allSettled(links.map(async ({ client }) => (await client).disconnect()));
  }

  #open(address: string, channel: string): Link {
    const link: Link = {
      address,
      client: this.#connect(channel, () => this.#lost(link)),
      channels: new Set(),
      pending: [],
      flush: undefined,
    };
    this.#links.set(address, link);
    link.client.catch(() => this.#lost(link));
    return link;
  }

  async #connect(channel: string, onLost: () => void): Promise<Redis> {
    const { client } = await this.#connection.openFor(channel, OPTIONS);
    client.on('smessage', (from: string) => this.#onMessage(from));
    // The server says so by itself when it no longer holds the hash slot of a channel.
    client.on('sunsubscribe', (from: string) => {
      if (this.#wanted.has(from)) onLost();
    });
    client.once('end', onLost);
    try {
      await client.connect();
    } catch (error) {
      client.disconnect();
      throw error;
    }
    return client;
  }

  /** Everything that is asked for in one turn of the event loop goes in one call. */
  #subscribe(link: Link, channel: string): Promise<void> {
    link.pending.push(channel);
    link.flush ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() =>
      this.#flush(link),
    );
    return link.flush;
  }

  async #flush(link: Link): Promise<void> {
    const client = await link.client;
    const channels = link.pending;
    link.pending = [];
    link.flush = undefined;
    for (const channel of channels) link.channels.add(channel);
    // In a cluster the channels of one call must share a hash slot.
    const size = link.address === 'standalone' ? BATCH : 1;
    const calls: Promise<unknown>[] = [];
    for (let i = 0; i < channels.length; i += size) {
      calls.push(client.ssubscribe(...channels.slice(i, i + size)));
    }
    await Promise.all(calls);
  }

  #lost(link: Link): void {
    if (this.#links.get(link.address) !== link) return;
    this.#links.delete(link.address);
    void link.client.then((client) => client.disconnect()).catch(() => {});
    const channels = [...link.channels].filter((channel) => this.#wanted.has(channel));
    if (channels.length === 0) return;
    void Promise.all(channels.map((channel) => this.add(channel))).then(() =>
      this.#onDoubt(channels),
    );
  }
}
