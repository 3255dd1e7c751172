import type { Redis } from 'ioredis';

/**
 * The connections from which blocking pops are ended: one to each server, for all shards there. A worker of a
 * single queue seldom needs one and keeps none; where several queues share their slots, every burst of work does.
 */
export class Unblocking {
  readonly #keeps: () => boolean;
  readonly #clients = new Map<string, Redis>();
  readonly #users = new Map<Redis, number>();

  constructor(keeps: () => boolean) {
    this.#keeps = keeps;
  }

  /** A connection to the server at `address`, to which `blocked` is connected. Call `done` afterwards. */
  to(address: string, blocked: Redis): Redis {
    let client = this.#clients.get(address);
    if (!client) {
      client = blocked.duplicate();
      client.on('error', () => {});
      const opened = client;
      // It does not reconnect: the next call opens another.
      client.once('end', () => {
        if (this.#clients.get(address) === opened) this.#clients.delete(address);
      });
      this.#clients.set(address, client);
    }
    this.#users.set(client, (this.#users.get(client) ?? 0) + 1);
    return client;
  }

  done(client: Redis): void {
    const left = (this.#users.get(client) ?? 1) - 1;
    if (left > 0) this.#users.set(client, left);
    else this.#users.delete(client);
    if (left <= 0 && !this.#keeps()) this.#drop(client);
  }

  /** The server at `address` may hang: calls that wait for it fail, the next one connects anew. */
  cut(address: string): void {
    const client = this.#clients.get(address);
    if (client) this.#drop(client);
  }

  /** No pop has to be ended any more. */
  close(): void {
    for (const client of [...this.#clients.values()]) this.#drop(client);
  }

  #drop(client: Redis): void {
    for (const [address, one] of this.#clients) if (one === client) this.#clients.delete(address);
    client.disconnect();
  }
}
