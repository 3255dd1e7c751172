import keySlot from 'cluster-key-slot';
import type { RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import { ConnectionError } from '../../contract/errors.js';
import { type Cluster, type Command, Redis } from '../ioredis.js';
import { catchAsking, findNodesBy } from '../ioredis-internals/cluster-internals.js';
import { unansweredCommands } from '../ioredis-internals/node-internals.js';

/**
 * Which server of a cluster has which hash slot, as the cluster client knows it. The client learns of a move from a
 * redirection, from a connection that closes, or from a refresh of its slot map. A plain connection to one server
 * learns of none of these; its owner asks here.
 */

/** How long a refresh of the slot map may take, in ms: each server that hangs costs the client one second of it. */
const REFRESH_MS = 3_000;
/** How long a server that lost a hash slot may take to redirect a call of it, in ms. */
const ASTRAY_MS = 1_000;

/** One for each client, however many use it: a client that was passed in may outlive thousands of users. */
const maps = new WeakMap<Cluster, SlotMap>();

export class SlotMap {
  readonly #cluster: Cluster;
  readonly #listeners = new Set<() => void>();
  /** Calls that were at the wrong server at the last refresh, and when each was first found there. */
  #astray = new WeakMap<Command, number>();

  private constructor(cluster: Cluster) {
    this.#cluster = cluster;
    maps.set(cluster, this);
    catchAsking(cluster);
    cluster.on('refresh', () => {
      for (const listener of this.#listeners) listener();
    });
  }

  static of(cluster: Cluster): SlotMap {
    return maps.get(cluster) ?? new SlotMap(cluster);
  }

  /**
   * For a client of our own: follows redirections through its `natMap`, takes back calls from servers that lost their
   * slot, and refreshes the slot map every `refreshEveryMs` (0: never) without keeping the process alive. The timer of
   * ioredis (`slotsRefreshInterval`) would run for ever when the client is closed during a refresh.
   */
  maintain(refreshEveryMs: number): void {
    const cluster = this.#cluster;
    if (cluster.options.natMap) findNodesBy(cluster, (address) => this.mapped(address));
    // After the replies that have already arrived: a busy event loop may not have read them yet.
    this.onRefresh(() => setImmediate(() => this.#takeBackStrays()));
    if (refreshEveryMs === 0) return;
    let timer: NodeJS.Timeout | undefined;
    cluster.on('ready', () => {
      timer ??= setInterval(() => {
        if (cluster.status === 'ready') cluster.refreshSlotsCache();
      }, refreshEveryMs).unref();
    });
    cluster.once('end', () => clearInterval(timer));
  }

  /**
   * ioredis drops a server that hangs when another has replaced it. A server that was not replaced, and whose slots
   * moved elsewhere while it hung, stays; it would delay its calls by the whole `commandTimeout`. So a server that has
   * a call of a slot it lost, at two refreshes a second or more apart, loses its connection. ioredis then resends the
   * calls, first to a random node. That may be the same one, so a call that waits for a connection to the wrong server
   * is taken back at once. Every script may be sent twice.
   */
  #takeBackStrays(): void {
    const now = performance.now();
    const seen = new WeakMap<Command, number>();
    for (const node of this.#cluster.nodes('all')) {
      const here = `${node.options.host}:${node.options.port}`;
      const strays = unansweredCommands(node).filter((command) => {
        const slot = command.getSlot();
        const at = slot === null ? undefined : this.#cluster.slots[slot]?.[0];
        return at !== undefined && this.mapped(at) !== here;
      });
      for (const command of strays) seen.set(command, this.#astray.get(command) ?? now);
      const lost = strays.some((command) => (seen.get(command) ?? now) <= now - ASTRAY_MS);
      if (lost || (strays.length > 0 && node.status !== 'ready')) node.disconnect();
    }
    this.#astray = seen;
  }

  /** 'host:port' of the master that has the slot of `key`, if it is known. */
  known(key: string): string | undefined {
    const address = this.#cluster.slots[keySlot(key)]?.[0];
    return address === undefined ? undefined : this.mapped(address);
  }

  /** Whether the server at this address, as `known` names it, is a master. */
  isMaster(address: string): boolean {
    const masters = this.#cluster.nodes('master');
    return masters.some(({ options: { host, port } }) => `${host}:${port}` === address);
  }

  /** @throws ConnectionError when no server is known for the slot of `key` */
  async addressOf(key: string): Promise<string> {
    if (this.#cluster.slots.length === 0) await this.#cluster.info();
    const address = this.known(key);
    if (!address) throw new ConnectionError('no server of the cluster holds this hash slot');
    return address;
  }

  /** Reads the slot map of the cluster. Never rejects: when it fails, the known map stays. */
  async refresh(): Promise<void> {
    const refreshed = new Promise<void>((resolve) => {
      this.#cluster.refreshSlotsCache(() => resolve());
    });
    await pTimeout(refreshed, { milliseconds: REFRESH_MS, message: false });
  }

  /** Calls `listener` after each refresh of the map; answers how to stop that. */
  onRefresh(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The address under which a node is reached, by `natMap`. A translated address stays as it is. */
  mapped(address: string): string {
    const { natMap } = this.#cluster.options;
    const to = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
    return to ? `${to.host}:${to.port}` : address;
  }

  /** A plain client to one server, with the options that all servers of the cluster share. Not connected yet. */
  openAt(address: string, options: RedisOptions): Redis {
    const [host = '', port = ''] = address.split(/:(?=\d+$)/);
    const shared = this.#cluster.options.redisOptions ?? {};
    const at = { host, port: Number(port), protocol: 2, lazyConnect: true };
    return new Redis({ ...shared, ...at, ...options } as RedisOptions);
  }
}
