import keySlot from 'cluster-key-slot';
import { type Cluster, type Command, Redis, type RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import { ConnectionError } from '../contract/errors.js';

/**
 * Which server of a cluster holds which hash slot, as the cluster client knows it. It learns of a move
 * by a redirection, by a connection that closes, or by looking from time to time; who has a plain
 * connection of its own to one server learns of none of these, and asks here.
 */

/** How long a look at the map may take, in ms: a server that hangs costs the client one second. */
const LOOK_MS = 3_000;
/** How long a server that does not hold a slot any more may take to say so of a call, in ms. */
const ASTRAY_MS = 1_000;

/** One for each client, however many look: a client that is passed in may outlive thousands of them. */
const maps = new WeakMap<Cluster, SlotMap>();

/** The connections of a client of ioredis, by address. */
interface Pooled {
  readonly connectionPool: { getInstanceByKey(address: string): Redis | undefined };
}

/** What of a node of ioredis shows which calls are not answered, or not even sent. */
interface Unanswered {
  readonly commandQueue: { toArray(): { readonly command: Command }[] };
  readonly offlineQueue: { toArray(): { readonly command: Command }[] };
}

export class SlotMap {
  readonly #cluster: Cluster;
  readonly #listeners = new Set<() => void>();
  /** Calls that were found astray at the last look, and when they were at first. */
  #astray = new WeakMap<Command, number>();

  private constructor(cluster: Cluster) {
    this.#cluster = cluster;
    maps.set(cluster, this);
    cluster.on('refresh', () => {
      for (const listener of this.#listeners) listener();
    });
  }

  static of(cluster: Cluster): SlotMap {
    return maps.get(cluster) ?? new SlotMap(cluster);
  }

  /**
   * For a client that nobody else uses: redirections are followed through its NAT map, calls that have gone
   * astray are taken back, and the map is looked at every so many ms besides, without keeping the process
   * from ending; 0: never. ioredis' own timer (`slotsRefreshInterval`) goes on for ever when the client is
   * closed while a look is under way.
   */
  care(lookEveryMs: number): void {
    const cluster = this.#cluster;
    this.#mapRedirections();
    // Behind what has arrived by then: an event loop that was held up has answers that it has not read.
    this.onLook(() => setImmediate(() => this.#lookForStrays()));
    if (lookEveryMs === 0) return;
    let timer: NodeJS.Timeout | undefined;
    cluster.on('ready', () => {
      timer ??= setInterval(() => {
        if (cluster.status === 'ready') cluster.refreshSlotsCache();
      }, lookEveryMs).unref();
    });
    cluster.once('end', () => clearInterval(timer));
  }

  /**
   * ioredis connects to the mapped address that a MOVED names, but remembers it as it was named, and finds
   * no connection there: until its next look at the map every call of the slot (and of those beside it,
   * which share what is remembered) goes to a random server, and may be redirected too often.
   */
  #mapRedirections(): void {
    if (!this.#cluster.options.natMap) return;
    const pool = (this.#cluster as unknown as Pooled).connectionPool;
    const find = pool.getInstanceByKey.bind(pool);
    pool.getInstanceByKey = (address) => find(address) ?? find(this.mapped(address));
  }

  /**
   * A server that hangs is dropped when others have replaced it. One whose slots moved elsewhere while it
   * hung, and that nobody replaced, stays, and would keep its calls for as long as `commandTimeout` says.
   * So whoever has a call at two looks in a row, a second apart or more, of a slot that is not with it any
   * more, loses its connection: ioredis sends what was on it again, first to any node, which may be the same one; so a call
   * that waits for a connection to the wrong one is not left there. Every script bears that.
   */
  #lookForStrays(): void {
    const now = performance.now();
    const seen = new WeakMap<Command, number>();
    for (const node of this.#cluster.nodes('all')) {
      const here = `${node.options.host}:${node.options.port}`;
      const { commandQueue, offlineQueue } = node as unknown as Unanswered;
      const strays = [...commandQueue.toArray(), ...offlineQueue.toArray()].filter(
        ({ command }) => {
          const slot = command.getSlot();
          const at = slot === null ? undefined : this.#cluster.slots[slot]?.[0];
          return at !== undefined && this.mapped(at) !== here;
        },
      );
      for (const { command } of strays) seen.set(command, this.#astray.get(command) ?? now);
      const lost = strays.some(({ command }) => (seen.get(command) ?? now) <= now - ASTRAY_MS);
      if (lost || (strays.length > 0 && node.status !== 'ready')) node.disconnect();
    }
    this.#astray = seen;
  }

  /** 'host:port' of the master that holds `key`, if it is known. */
  known(key: string): string | undefined {
    const address = this.#cluster.slots[keySlot(key)]?.[0];
    return address === undefined ? undefined : this.mapped(address);
  }

  /** Whether the server at this address, as `known` names it, holds anything. */
  isMaster(address: string): boolean {
    const masters = this.#cluster.nodes('master');
    return masters.some(({ options: { host, port } }) => `${host}:${port}` === address);
  }

  /** @throws ConnectionError when no server is known to hold `key` */
  async addressOf(key: string): Promise<string> {
    if (this.#cluster.slots.length === 0) await this.#cluster.info();
    const address = this.known(key);
    if (!address) throw new ConnectionError('no server of the cluster holds this hash slot');
    return address;
  }

  /** Asks the cluster where everything is. Never rejects: then what is known stays. */
  async refresh(): Promise<void> {
    const looked = new Promise<void>((resolve) => {
      this.#cluster.refreshSlotsCache(() => resolve());
    });
    await pTimeout(looked, { milliseconds: LOOK_MS, message: false });
  }

  /** Calls back whenever the map was looked at; answers how to stop that. */
  onLook(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Where an address that the cluster names is to be reached. One that is mapped already stays. */
  mapped(address: string): string {
    const { natMap } = this.#cluster.options;
    const to = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
    return to ? `${to.host}:${to.port}` : address;
  }

  /** A plain client to one server, with what all servers of the cluster share. Not connected yet. */
  openAt(address: string, options: RedisOptions): Redis {
    const [host = '', port = ''] = address.split(/:(?=\d+$)/);
    const shared = this.#cluster.options.redisOptions ?? {};
    const at = { host, port: Number(port), protocol: 2, lazyConnect: true };
    return new Redis({ ...shared, ...at, ...options } as RedisOptions);
  }
}
