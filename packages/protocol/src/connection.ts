import keySlot from 'cluster-key-slot';
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { ConnectionError, InvalidOptionError, ServerError } from './errors.js';
import { redisError } from './redis-error.js';
import type { Client } from './run-script.js';

/**
 * Where Redis is: a URL (`redis://`, `rediss://`, `unix://` or a socket path), ioredis options, the
 * nodes of a cluster, or an ioredis client of yours, which is never closed by Piecework.
 */
export type RedisInput =
  | string
  | RedisOptions
  | { readonly nodes: readonly { host: string; port: number }[]; readonly options?: ClusterOptions }
  | Client;

const isClient = (input: object): input is Client =>
  'duplicate' in input && typeof input.duplicate === 'function';

function openClient(input: Exclude<RedisInput, Client>): Client {
  const own = { protocol: 2 as const, lazyConnect: true };
  if (typeof input === 'string') return new Redis(input.replace(/^unix:\/\//, ''), own);
  if ('nodes' in input && input.nodes) {
    const redisOptions = { ...input.options?.redisOptions, protocol: 2 } as RedisOptions;
    const options = { ...input.options, redisOptions, lazyConnect: true } as ClusterOptions;
    return new Cluster([...input.nodes], options);
  }
  return new Redis({ ...(input as RedisOptions), ...own } as RedisOptions);
}

function checkInput(input: RedisInput): void {
  const allowed =
    'a redis:// URL, ioredis options, { nodes: [{ host, port }] } or an ioredis client';
  if (typeof input === 'string') {
    if (!/^(rediss?:\/\/|unix:\/\/|\/)/.test(input))
      throw new InvalidOptionError('redis', input, allowed);
    return;
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new InvalidOptionError('redis', input, allowed);
  }
  if ('nodes' in input && !isClient(input)) {
    const { nodes } = input;
    if (!Array.isArray(nodes) || nodes.length === 0)
      throw new InvalidOptionError('redis.nodes', nodes, allowed);
  }
  const prefix = input as { keyPrefix?: unknown; options?: { keyPrefix?: unknown } | undefined };
  if (prefix.keyPrefix || prefix.options?.keyPrefix) {
    throw new InvalidOptionError(
      'redis.keyPrefix',
      prefix.keyPrefix ?? prefix.options?.keyPrefix,
      'none: use `queue`',
    );
  }
}

/** One way to Redis, shared by everything that a Piecework object does there. */
export class Connection {
  readonly client: Client;
  readonly #owned: boolean;
  #checked: Promise<void> | undefined;

  private constructor(client: Client, owned: boolean) {
    this.client = client;
    this.#owned = owned;
    // Without a listener ioredis prints; a broken connection shows in the calls that need it.
    if (owned) client.on('error', () => {});
  }

  /** @throws InvalidOptionError when `input` is none of the four forms. Connects at the first call. */
  static open(input: RedisInput): Connection {
    checkInput(input);
    if (typeof input === 'object' && isClient(input)) return new Connection(input, false);
    return new Connection(openClient(input), true);
  }

  /**
   * Looks at the server once: its version and whether it would evict our keys.
   * @throws ServerError TOO_OLD, EVICTING · ConnectionError when it cannot be reached.
   */
  async check(): Promise<void> {
    this.#checked ??= this.#check().catch((error: unknown) => {
      this.#checked = undefined;
      throw error;
    });
    return this.#checked;
  }

  async #check(): Promise<void> {
    const info = await this.client.info().catch((error: unknown) => {
      throw redisError(error, 'connect');
    });
    const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
    const version = field('redis_version') ?? '0';
    if (Number.parseInt(version, 10) < 7) {
      throw new ServerError(`Redis ${version} is too old: 7.0 or newer is needed`, {
        code: 'TOO_OLD',
      });
    }
    const policy = field('maxmemory_policy');
    if (policy && policy !== 'noeviction' && field('maxmemory') !== '0') {
      throw new ServerError(
        `maxmemory-policy is ${policy}, which deletes work at random: set it to noeviction`,
        { code: 'EVICTING' },
      );
    }
  }

  /**
   * A plain client of its own to the server that holds `key` (in a cluster: the master of its hash
   * slot), for what may not share a connection: blocking pops and subscriptions. The caller closes it.
   */
  async openFor(key: string, options: RedisOptions): Promise<{ client: Redis; address: string }> {
    if (!(this.client instanceof Cluster)) {
      const client = (this.client as Redis).duplicate({
        ...options,
        protocol: 2,
        lazyConnect: true,
      } as RedisOptions);
      client.on('error', () => {});
      return { client, address: 'standalone' };
    }
    const address = await this.addressOf(key);
    const [host = '', port = ''] = address.split(/:(?=\d+$)/);
    const shared = this.client.options.redisOptions ?? {};
    const at = { host, port: Number(port), protocol: 2, lazyConnect: true };
    const client = new Redis({ ...shared, ...at, ...options } as RedisOptions);
    client.on('error', () => {});
    return { client, address };
  }

  /** Which server holds `key`: 'standalone', or 'host:port' of the master of its hash slot. */
  async addressOf(key: string): Promise<string> {
    if (!(this.client instanceof Cluster)) return 'standalone';
    if (this.client.slots.length === 0) await this.client.info();
    const address = this.client.slots[keySlot(key)]?.[0];
    if (!address) throw new ConnectionError('no server of the cluster holds this hash slot');
    return address;
  }

  /** Closes the client if it is ours. */
  async close(): Promise<void> {
    if (!this.#owned || this.client.status === 'end') return;
    if (this.client.status === 'wait') {
      this.client.disconnect();
      return;
    }
    await this.client.quit().catch(() => this.client.disconnect());
  }
}
