import type { RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import type { PieceworkError } from '../contract/errors.js';
import { type Client, isCluster } from './client.js';
import { cutCluster, historyOf, retryHangs } from './cluster/cluster-client.js';
import { SlotMap } from './cluster/slot-map.js';
import type { Credentials, KnownCredential } from './credentials.js';
import { Redis } from './ioredis.js';
import { gatherWrites } from './ioredis-internals/gathered-writes.js';
import { leaveOnce, selectedDb } from './ioredis-internals/node-internals.js';
import {
  apart,
  checkInput,
  isClient,
  openClient,
  type RedisInput,
  type Where,
} from './open-client.js';
import { isWatched, SentinelWatch } from './sentinel-watch.js';
import { ServerCheck } from './server-check.js';
import { type MemoryUse, memoryIn } from './server-info.js';

/** How long a close waits for the server, in ms. */
const CLOSE_MS = 5_000;

/**
 * A server that hangs neither closes connections nor redirects. Without a refresh the client would keep asking it after
 * others have replaced it. So the slot map is also refreshed this often, in ms.
 */
const REFRESH_SLOTS_MS = 5_000;

/**
 * A connection that several objects of Piecework share. Only Piecework makes one: to share a connection of yours, pass
 * the same ioredis client to each object.
 */
export interface SharedConnection {
  readonly client: Client;
  close(): Promise<void>;
}

/** A connection to Redis, shared by everything that a Piecework object does there. */
export class Connection implements SharedConnection {
  readonly client: Client;
  /** What users call the object that opened it and that its roles belong to; undefined: a role of its own. */
  readonly owner: string | undefined;
  /** Where user and password of its clients come from; undefined: they have their own. */
  readonly credentials: Credentials | undefined;
  readonly #owned: boolean;
  readonly #slots: SlotMap | undefined;
  readonly #server: ServerCheck;
  /** Clients made by `openAt` that may have to authenticate again. */
  readonly #opened = new Set<Redis>();
  /** Of a client that was passed in. */
  #watch: SentinelWatch | undefined;

  private constructor(
    client: Client,
    owner: string | undefined,
    input?: Where,
    refreshEveryMs = 0,
    credentials?: Credentials,
  ) {
    this.client = client;
    this.owner = owner;
    this.#owned = input !== undefined;
    this.#slots = isCluster(client) ? SlotMap.of(client) : undefined;
    this.#server = new ServerCheck(client, input);
    this.credentials = credentials;
    if (!this.#owned) {
      if (!isCluster(client) && isWatched(client.options))
        this.#watch = SentinelWatch.following(client);
      return;
    }
    if (credentials)
      client.once(
        'end',
        credentials.onAnswer((answer) => this.#authenticate(answer)),
      );
    historyOf(client);
    gatherWrites(client);
    this.#slots?.maintain(refreshEveryMs);
    if (isCluster(client)) retryHangs(client);
  }

  /** @throws InvalidOptionError when `input` is none of the forms of RedisInput. Connects at the first call. */
  static open(input: RedisInput, owner?: string): Connection {
    checkInput(input);
    if (typeof input === 'object' && isClient(input)) return new Connection(input as Client, owner);
    const { where, credentials } = apart(input);
    const given = typeof where === 'object' && 'nodes' in where ? where.options : undefined;
    const refreshEveryMs = given?.slotsRefreshInterval ?? REFRESH_SLOTS_MS;
    const client = openClient(where, credentials);
    return new Connection(client, owner, where, refreshEveryMs, credentials);
  }

  /** The connection itself if `input` is one, else a new one as `open` makes it. @throws InvalidOptionError */
  static of(input: RedisInput | SharedConnection): Connection {
    return input instanceof Connection ? input : Connection.open(input as RedisInput);
  }

  /**
   * Connects when it has to, and checks that the server can be used; see `ServerCheck.check`.
   * @throws ServerError TOO_OLD, EVICTING, NO_DB, CLUSTER_DOWN · ConnectionError when it cannot be reached
   */
  check(): Promise<void> {
    return this.#server.check();
  }

  /** Whether that would succeed at once, as it did before; starts the same checks in the background. */
  get isChecked(): boolean {
    return this.#server.isChecked;
  }

  /** A connection error with its cause, as far as it can be found out; see `ServerCheck.explained`. */
  explained(error: PieceworkError): Promise<PieceworkError> {
    return this.#server.explained(error);
  }

  /** A number that changes with each new connection: the server may have lost what it answered before. */
  get epoch(): number {
    const { arrivals, losses } = historyOf(this.client);
    return arrivals + losses;
  }

  /** Why it is not connected now, as a client of ours reported it; '' when it is. */
  get trouble(): string {
    return this.#server.trouble;
  }

  /** Whether Sentinels name the server: they may soon name another one. */
  get hasSentinels(): boolean {
    return !isCluster(this.client) && (this.client.options.sentinels?.length ?? 0) > 0;
  }

  /** Whether one connection serves all keys: it carries out commands in the order of sending. */
  get isOneServer(): boolean {
    return !isCluster(this.client);
  }

  /**
   * Watches the connection from now on. `reached`: whether a call could be sent at any time since · `lost`: whether a
   * node of the cluster was lost since; the client may have sent a call to it, and then again to another node.
   */
  watchReach(): Reach {
    return new Reach(this.client);
  }

  /**
   * A separate plain client to the server of `key` (in a cluster: the master of its hash slot), for what cannot share
   * a connection: blocking pops and subscriptions. The caller closes it.
   */
  async openFor(key: string, options: RedisOptions): Promise<{ client: Redis; address: string }> {
    const address = await this.addressOf(key);
    return { client: this.openAt(address, options), address };
  }

  /** A separate plain client to the server at this address, as `addressOf` or a redirection names it. */
  openAt(address: string, options: RedisOptions): Redis {
    const slots = this.#slots;
    const client = slots
      ? slots.openAt(slots.mapped(address), options)
      : leaveOnce(
          duplicateOf(
            this.client as Redis,
            {
              db: selectedDb(this.client as Redis),
              ...(this.#watch && { Connector: this.#watch.Connector }),
              ...options,
              protocol: 2,
              lazyConnect: true,
            } as RedisOptions,
          ),
        );
    client.on('error', () => {});
    if (this.credentials) {
      this.#opened.add(client);
      client.once('end', () => this.#opened.delete(client));
    }
    return client;
  }

  /**
   * Has all connections that are open authenticate again. One that subscribes may not call AUTH: the server closes it
   * when its credential ends, and another one is opened in its place.
   */
  #authenticate({ username, password }: KnownCredential): void {
    const { client } = this;
    const own = isCluster(client) ? client.nodes('all') : [client];
    for (const one of [...own, ...this.#opened]) {
      // If it is refused, the server closes the connection in time, and the next attempt reports why.
      if (one.status === 'ready' && one.mode !== 'subscriber')
        one.auth(username, password).catch(() => {});
    }
  }

  /** Which server has `key`: 'standalone', or 'host:port' of the master of its hash slot. */
  async addressOf(key: string): Promise<string> {
    return this.#slots ? this.#slots.addressOf(key) : 'standalone';
  }

  /** As `addressOf`, from what is known now; undefined: not known. */
  knownAddressOf(key: string): string | undefined {
    return this.#slots ? this.#slots.known(key) : 'standalone';
  }

  /**
   * Memory use of the server at this address, as `knownAddressOf` names it; undefined: not known, as when it is not
   * connected. Rejects when the server does not answer or refuses to.
   */
  async memoryOf(address: string): Promise<MemoryUse | undefined> {
    const { client } = this;
    const is = ({ options: { host, port } }: Redis) => `${host}:${port}` === address;
    const server = isCluster(client) ? client.nodes('master').find(is) : client;
    if (!server) return undefined;
    return memoryIn(await server.info('memory'));
  }

  /** Whether the server at this address is a master, as far as it is known now. */
  isMaster(address: string): boolean {
    return this.#slots?.isMaster(address) ?? true;
  }

  /** Reads the slot map of a cluster again, as when a server is gone; never rejects. */
  async refreshSlots(): Promise<void> {
    await this.#slots?.refresh();
  }

  /** Calls `listener` after each refresh of the slot map; answers how to stop that. */
  onSlotsRefreshed(listener: () => void): () => void {
    return this.#slots?.onRefresh(listener) ?? (() => {});
  }

  /** Closes the client at once, ours or not. Calls in progress fail. */
  cut(): void {
    const { client } = this;
    if (isCluster(client)) {
      cutCluster(client);
      return;
    }
    // While it waits to reconnect, ioredis would never answer the calls in its queue.
    if (client.status === 'reconnecting') client.connect().catch(() => {});
    client.disconnect();
  }

  /** Closes the client if it is ours. */
  async close(): Promise<void> {
    this.#watch?.release();
    this.#watch = undefined;
    if (!this.#owned || this.client.status === 'end') return;
    if (this.client.status === 'wait') {
      this.client.disconnect();
      return;
    }
    if (isCluster(this.client) && this.client.nodes().length === 0) return this.cut();
    await this.client.quit().catch(() => this.client.disconnect());
  }

  /**
   * Closes the client if it is ours, after `behind`, the calls in progress. When the server does not answer for 5 s, or
   * is away, it closes at once and those calls fail. A client that was passed in stays open.
   */
  async closeSoon(behind: Promise<unknown> = Promise.resolve()): Promise<void> {
    const closing = behind.then(() => this.close());
    const fallback = async () => {
      if (!this.#owned) return;
      this.cut();
      await closing;
    };
    const away =
      this.client.status === 'reconnecting' || (this.trouble !== '' && this.#server.isInVain);
    const milliseconds = away ? 1 : CLOSE_MS;
    await pTimeout(closing, { milliseconds, fallback });
  }
}

/** A client of another copy of ioredis is duplicated into one of ours, whose replies and errors we know. */
const duplicateOf = (client: Redis, options: RedisOptions): Redis =>
  client instanceof Redis
    ? client.duplicate(options)
    : new Redis({ ...(client as Redis).options, ...options });

/** What became of a connection since this object was made; one is made for each call. */
class Reach {
  readonly #client: Client;
  readonly #ready: boolean;
  readonly #arrivals: number;
  readonly #losses: number;

  constructor(client: Client) {
    const { arrivals, losses } = historyOf(client);
    this.#client = client;
    this.#ready = client.status === 'ready';
    this.#arrivals = arrivals;
    this.#losses = losses;
  }

  reached(): boolean {
    return this.#ready || historyOf(this.#client).arrivals > this.#arrivals;
  }

  lost(): boolean {
    return historyOf(this.#client).losses > this.#losses;
  }
}
