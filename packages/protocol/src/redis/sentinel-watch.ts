import type { Socket } from 'node:net';
import type { RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import { pause } from '../common/waiting.js';
import { Redis, SentinelConnector } from './ioredis.js';

/*
 * Leaves a master that Sentinel replaces. Without it, connections stay with the former master until a Sentinel demotes
 * it, ten seconds after the other server took over; everything that the former master acknowledges in this time is
 * lost. `failoverDetector` of ioredis leaves at `+switch-master`, about a second after the other server took over, and
 * needs connections to all Sentinels for each of its clients, which `quit` leaves open.
 *
 * The Sentinel that performs a failover announces it in this order:
 *
 *   +failover-state-select-slave   it begins; two periods of its timer, 100 to 200 ms, before it promotes a replica
 *   +promoted-slave                the replica has said, in the INFO of each second, that it is a master
 *   +switch-master                 the other replicas follow it; each other Sentinel announces it when it learns of it
 *   -failover-abort-…              the master remains the master
 *
 * All connections are cut at the first announcement that names their master, as by the network, so that everything
 * that copes with a lost connection copes with this. New ones wait until the failover is decided.
 *
 * It uses `Connector` and `natMap`, which ioredis documents, and extends its SentinelConnector.
 */

const BEGINS = '+failover-state-select-slave';
const PROMOTED = '+promoted-slave';
const SWITCHED = '+switch-master';
const ABORTED = ['-failover-abort-no-good-slave', '-failover-abort-slave-timeout'];

/**
 * How long new connections wait for the decision, and then are not made to the former master, in ms. Usually the
 * decision takes one second; the other Sentinels learn of it within two.
 */
const DECIDED_MS = 5_000;
/** How long the first connection waits until a Sentinel answers that it will announce failovers, in ms. */
const LISTENS_MS = 1_000;
/** How soon a lost connection to a Sentinel is opened again, in ms. */
const AGAIN_MS = 500;

/** What a client of ioredis calls to connect; `natMap` gives each address as the Sentinels name it. */
type ConnectorClass = NonNullable<RedisOptions['Connector']>;

const ours = new WeakSet<object>();

/** Whether this `Connector` of a client's options was made here. */
export const isFollowing = (connector: unknown): boolean =>
  typeof connector === 'function' && ours.has(connector);

/** Whether failovers of the server to which these options lead are announced by Sentinels. */
export const isWatched = ({ sentinels, name, role }: RedisOptions): boolean =>
  (sentinels?.length ?? 0) > 0 && Boolean(name) && role !== 'slave';

/** The watches of clients that were passed in, each shared by all that use the client. */
const followed = new WeakMap<Redis, SentinelWatch>();

/** Listens to the Sentinels of one client, and of those duplicated from it, from the first connection on. */
export class SentinelWatch {
  readonly Connector: ConnectorClass;
  readonly #options: RedisOptions;
  /** The open connections, each with the address that the Sentinels gave for it; undefined: not known. */
  readonly #streams = new Map<Socket, string | undefined>();
  #sentinels: Redis[] = [];
  #listens: Promise<unknown> = Promise.resolve();
  #former: { readonly address: string; readonly untilMs: number } | undefined;
  #decision = new AbortController();
  #undecidedUntilMs = 0;
  #users = 0;

  constructor(options: RedisOptions) {
    this.#options = options;
    this.Connector = this.#connector();
    ours.add(this.Connector);
  }

  /**
   * Of a client that has a connector of its own: it leaves as well, but after the promotion, as nothing would keep it
   * from connecting to the same server again before. Call `release` when it is no longer used.
   */
  static following(client: Redis): SentinelWatch {
    const watch = followed.get(client) ?? new SentinelWatch(client.options);
    if (watch.#users === 0) watch.#follow(client);
    watch.#users += 1;
    return watch;
  }

  release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#unfollow();
  }

  /** The next connection makes it listen again. */
  readonly hush = (): void => {
    for (const sentinel of this.#sentinels) sentinel.disconnect();
    this.#sentinels = [];
  };

  #follow(client: Redis): void {
    const join = () => {
      this.#listen();
      this.#join(client.stream as Socket, undefined);
    };
    client.on('connect', join);
    client.on('end', this.hush);
    followed.set(client, this);
    this.#unfollow = () => {
      client.off('connect', join);
      client.off('end', this.hush);
      followed.delete(client);
      this.hush();
    };
    if (client.status === 'connect' || client.status === 'ready') join();
  }

  #unfollow: () => void = () => {};

  #connector(): ConnectorClass {
    const watch = this;
    return class FollowingConnector extends SentinelConnector {
      #address: string | undefined;
      #left = new AbortController();

      constructor(given: unknown) {
        const options = given as RedisOptions;
        const { natMap } = options;
        const noted = (address: string) => {
          this.#address = address;
          return typeof natMap === 'function' ? natMap(address) : (natMap?.[address] ?? null);
        };
        super({ ...options, natMap: noted, failoverDetector: false } as never);
      }

      override async connect(emit: (type: string, error: Error) => void) {
        this.connecting = true;
        this.#left = new AbortController();
        await watch.#ready(this.#left.signal);
        if (!this.connecting) throw new Error('Connection is closed.');
        const stream = await super.connect(emit);
        watch.#join(stream as Socket, this.#address);
        return stream;
      }

      override disconnect() {
        this.#left.abort();
        super.disconnect();
      }
    } as unknown as ConnectorClass;
  }

  async #ready(left: AbortSignal): Promise<void> {
    this.#listen();
    await this.#listens;
    // cure: no connection is made to a master that is being replaced
    await this.#decided(left);
  }

  async #decided(left: AbortSignal): Promise<void> {
    while (!left.aborted) {
      const leftMs = this.#undecidedUntilMs - performance.now();
      if (leftMs <= 0) return;
      await pause(leftMs, this.#decision.signal, left);
    }
  }

  #join(stream: Socket, address: string | undefined): void {
    const { address: former, untilMs = 0 } = this.#former ?? {};
    if (address !== undefined && address === former && performance.now() < untilMs) {
      // A Sentinel that has not learnt of the failover named it.
      stream.destroy();
      return;
    }
    this.#streams.set(stream, address);
    stream.once('close', () => this.#streams.delete(stream));
  }

  #listen(): void {
    if (this.#sentinels.length > 0) return;
    const { sentinels = [] } = this.#options;
    const subscribed = sentinels.map((address) => this.#listenTo(address));
    const any = Promise.any(subscribed).then(
      () => {},
      () => {},
    );
    this.#listens = pTimeout(any, { milliseconds: LISTENS_MS, fallback: () => {} });
  }

  /** Resolves when this Sentinel has answered that it will announce failovers, rejects when it cannot be reached. */
  #listenTo({ host, port, family }: { host?: string; port?: number; family?: number }) {
    const options = this.#options;
    const sentinel = new Redis({
      ...(host === undefined ? {} : { host }),
      ...{ port: port ?? 26_379, family: family ?? options.family },
      ...{ username: options.sentinelUsername, password: options.sentinelPassword },
      tls: options.sentinelTLS,
      connectTimeout: options.connectTimeout,
      connectionName: 'piecework-failovers',
      ...{ protocol: 2, enableReadyCheck: false, autoResubscribe: false, maxRetriesPerRequest: 0 },
      retryStrategy: () => AGAIN_MS,
    } as RedisOptions);
    this.#sentinels.push(sentinel);
    sentinel.on('error', () => {});
    // It alone keeps no process alive.
    sentinel.on('connect', () => (sentinel.stream as Socket).unref());
    sentinel.on('message', (channel, text) => this.#hear(channel, text));
    return new Promise<void>((resolve, reject) => {
      sentinel.on('close', reject);
      sentinel.on('ready', () => {
        // Sent together with the subscription, as no command may follow a subscription.
        sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.#options.name as string).then(
          (found) => this.#check(found as [string, string] | null),
          () => {},
        );
        sentinel.subscribe(BEGINS, PROMOTED, SWITCHED, ...ABORTED).then(() => resolve(), reject);
      });
    });
  }

  /** A Sentinel names the master: what it announced while it was not heard may have been missed. */
  #check(found: readonly [string, string] | null): void {
    if (!found) return;
    const master = found.join(':');
    // cure: a failover that was not heard of is noticed
    for (const [stream, address] of this.#streams)
      if (address !== undefined && address !== master) stream.destroy();
  }

  #hear(channel: string, text: string): void {
    const { name, former, next } = announced(channel, text);
    if (name !== this.#options.name) return;
    const begins = channel === BEGINS;
    this.#undecidedUntilMs = begins ? performance.now() + DECIDED_MS : 0;
    if (!begins) {
      this.#decision.abort();
      this.#decision = new AbortController();
    }
    if (ABORTED.includes(channel)) return;
    if (!begins) this.#former = { address: former, untilMs: performance.now() + DECIDED_MS };
    for (const [stream, address] of this.#streams) {
      const isThere = address ?? (begins || isAt(stream, next) ? '' : former);
      // cure: all connections leave a master that is replaced
      if (isThere === former) stream.destroy();
    }
  }
}

const isAt = ({ remoteAddress, remotePort }: Socket, address: string): boolean =>
  `${remoteAddress}:${remotePort}` === address;

/**
 * The master that an announcement is about, and the server that takes its place; '' when that is not known. The texts
 * are 'master NAME HOST PORT', 'slave NEXT HOST PORT @ NAME HOST PORT' and 'NAME HOST PORT NEXT-HOST NEXT-PORT'.
 */
function announced(channel: string, text: string): { name: string; former: string; next: string } {
  const words = text.split(' ');
  const from = channel === SWITCHED ? 0 : channel === PROMOTED ? words.indexOf('@') + 1 : 1;
  const at = channel === SWITCHED ? 3 : channel === PROMOTED ? 2 : words.length;
  const [name = ''] = words.slice(from);
  const address = (first: number) => words.slice(first, first + 2).join(':');
  return { name, former: address(from + 1), next: address(at) };
}
