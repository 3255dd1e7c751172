import keySlot from 'cluster-key-slot';
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { TIMES } from './defaults.js';
import { ConnectionError, InvalidOptionError, ServerError } from './errors.js';
import { redisError } from './redis-error.js';
import type { Client } from './run-script.js';
import { pause } from './waiting.js';

/** How long the first look at a server may take, in ms. */
const CHECK_MS = 10_000;

/**
 * Where Redis is: a URL (`redis://`, `rediss://`, `unix://` or a socket path), the URLs of some nodes
 * of a cluster with commas between them, ioredis options, the nodes of a cluster, or an ioredis client
 * of yours, which is never closed by Piecework.
 */
export type RedisInput =
  | string
  | RedisOptions
  | { readonly nodes: readonly { host: string; port: number }[]; readonly options?: ClusterOptions }
  | Client;

/** Whether a text may say where Redis is. */
export function isRedisUrl(text: string): boolean {
  if (/^(unix:\/\/|\/)\S+$/.test(text)) return true;
  return nodeUrls(text).every((url) => /^rediss?:\/\/\S+$/.test(url) && URL.canParse(url));
}

/** The URLs of cluster nodes; one for a single server, whose password may hold a comma. */
function nodeUrls(text: string): string[] {
  return text.split(/,(?=rediss?:\/\/)/);
}

const isClient = (input: object): input is Client =>
  'duplicate' in input && typeof input.duplicate === 'function';

/**
 * A server that accepts and never answers (a host that died, a network that swallows) is not waited
 * for: the call fails, and the socket is thrown away, so that the client builds a new one. What was
 * sent may still be carried out, which every script bears. Busy servers do answer: with BUSY.
 */
const ANSWER = { commandTimeout: TIMES.answerMs, socketTimeout: TIMES.answerMs };

function openClient(input: Exclude<RedisInput, Client>): Client {
  const own = { protocol: 2 as const, lazyConnect: true };
  if (typeof input === 'string') {
    const urls = nodeUrls(input);
    if (urls.length > 1) return openCluster(urls);
    return new Redis(input.replace(/^unix:\/\//, ''), { ...ANSWER, ...own });
  }
  if ('nodes' in input && input.nodes) {
    const redisOptions = {
      ...ANSWER,
      ...input.options?.redisOptions,
      protocol: 2,
    } as RedisOptions;
    const options = { ...input.options, redisOptions, lazyConnect: true } as ClusterOptions;
    return new Cluster([...input.nodes], options);
  }
  return new Redis({ ...ANSWER, ...(input as RedisOptions), ...own } as RedisOptions);
}

/** Name, password and TLS are those of the first URL: all nodes of a cluster share them. */
function openCluster(urls: readonly string[]): Cluster {
  const nodes = urls.map((text) => new URL(text));
  const [{ username = '', password = '', protocol = '' } = {}] = nodes;
  const redisOptions: RedisOptions = {
    ...ANSWER,
    protocol: 2,
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
  const at = ({ hostname, port }: URL) => ({ host: hostname, port: Number(port || 6379) });
  return new Cluster(nodes.map(at), { redisOptions, lazyConnect: true });
}

function checkInput(input: RedisInput): void {
  const allowed =
    'a redis:// URL (of a cluster: several, with commas), ioredis options, { nodes: [{ host, port }] } or an ioredis client';
  if (typeof input === 'string') {
    if (!isRedisUrl(input)) throw new InvalidOptionError('redis', input, allowed);
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

/** How often each client became ready: one listener for each, however many look. */
const readiness = new WeakMap<Client, { count: number }>();

function arrivals(client: Client): { readonly count: number } {
  let known = readiness.get(client);
  if (!known) {
    const counter = { count: 0 };
    client.on('ready', () => {
      counter.count += 1;
    });
    readiness.set(client, counter);
    known = counter;
  }
  return known;
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
    if (this.#owned && this.client.status === 'wait') await this.#connect();
    const info = await this.#withinLimit(this.client.info());
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
    if (field('cluster_enabled') === '1' && !(this.client instanceof Cluster)) {
      await this.#checkAlone(this.client as Redis);
    }
  }

  /** A server may accept a connection and never answer. */
  async #withinLimit<T>(call: Promise<T>): Promise<T> {
    const over = new AbortController();
    const late = pause(CHECK_MS, over.signal).then(() => {
      if (over.signal.aborted) return;
      throw new ConnectionError(`connect: no answer within ${CHECK_MS / 1_000} s`);
    });
    try {
      return (await Promise.race([call, late])) as T;
    } catch (error) {
      throw redisError(error, 'connect');
    } finally {
      over.abort();
    }
  }

  /** The first attempt tells: whoever begins learns at once that there is no Redis. */
  async #connect(): Promise<void> {
    let why: unknown;
    const note = (error: unknown) => {
      why ??= error;
    };
    this.client.on('error', note);
    try {
      await this.#withinLimit(this.client.connect());
    } catch (error) {
      throw why === undefined ? error : redisError(why, 'connect');
    } finally {
      this.client.off('error', note);
    }
  }

  /** A plain client of one node cannot reach the hash slots of the others. */
  async #checkAlone(client: Redis): Promise<void> {
    const ranges = await client.cluster('SLOTS').catch((error: unknown) => {
      throw redisError(error, 'connect');
    });
    const masters = new Set(ranges.map(([, , master]) => master?.[2]));
    if (masters.size > 1) {
      throw new ServerError(
        `this Redis is one of the ${masters.size} masters of a cluster: name its nodes, as { nodes } or as URLs with commas between them`,
        { code: 'CLUSTER' },
      );
    }
  }

  /**
   * Begins to look whether anything can be sent; the function that it answers says whether it could
   * at any time since.
   */
  watchReach(): () => boolean {
    const { client } = this;
    const before = arrivals(client).count;
    const ready = client.status === 'ready';
    return () => ready || arrivals(client).count > before;
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

  /** Closes the client at once, ours or not; whatever is under way fails. */
  cut(): void {
    const { client } = this;
    // While it waits to reconnect, ioredis would leave what is queued without an answer for ever.
    if (client.status === 'reconnecting') client.connect().catch(() => {});
    client.disconnect();
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
