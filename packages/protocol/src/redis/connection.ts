import { Cluster, type Redis, type RedisOptions } from 'ioredis';
import pTimeout from 'p-timeout';
import { pause } from '../common/waiting.js';
import { ConnectionError, type PieceworkError, ServerError } from '../contract/errors.js';
import type { Client } from './client.js';
import { dbOf } from './cloneable-settings.js';
import { cutCluster, historyOf, retryHangs } from './cluster-client.js';
import { whyDown } from './cluster-state.js';
import { checkInput, isClient, openClient, type RedisInput } from './open-client.js';
import { redisError } from './redis-error.js';
import { askedInVain, connectError } from './sentinel-error.js';
import { SlotMap } from './slot-map.js';
import { wrongWay } from './tls-probe.js';

/** How long the first look at a server may take, in ms. */
const CHECK_MS = 10_000;
/** The same of one master of several. */
const MASTER_MS = 2_000;
/** The same of one that may be loading its data. */
const LOADING_MS = 1_000;
/** How soon a server that was fit is looked at again, in ms. */
const LOOK_AGAIN_MS = 3_000;
/** Who was answered nothing for so long may have asked in the wrong way, in ms. */
const DOUBT_MS = 1_000;
/** How long a close waits for the server, in ms. */
const CLOSE_MS = 5_000;

/**
 * A server that hangs closes nothing and redirects nobody: who only waits for that goes on asking it
 * after the others have replaced it. So the map is looked at this often besides, in ms.
 */
const LOOK_AT_SLOTS_MS = 5_000;

function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}

const isLoading = (info: string) => infoField(info, 'loading') === '1';

const loading = () => redisError(new Error('LOADING Redis is loading its data'), 'connect');

/** @throws ServerError TOO_OLD, EVICTING when a server that answers `INFO` so is not to be used */
function refuseUnfit(info: string): void {
  const version = infoField(info, 'redis_version') ?? '0';
  if (Number.parseInt(version, 10) < 7) {
    throw new ServerError(`Redis ${version} is too old: 7.0 or newer is needed`, {
      code: 'TOO_OLD',
    });
  }
  const policy = infoField(info, 'maxmemory_policy');
  if (policy && policy !== 'noeviction' && infoField(info, 'maxmemory') !== '0') {
    throw new ServerError(
      `maxmemory-policy is ${policy}, which deletes work at random: set it to noeviction`,
      { code: 'EVICTING' },
    );
  }
}

/** A server may accept a connection and never answer. `where`: who was asked, if it is told. */
function within<T>(milliseconds: number, call: Promise<T>, where = ''): Promise<T> {
  const from = where === '' ? '' : ` from ${where}`;
  const message = new ConnectionError(
    `connect: no answer within ${milliseconds / 1_000} s${from}: it takes connections and says nothing; see that its process is not stopped or busy, then try again`,
  );
  return pTimeout(call, { milliseconds, message });
}

/** Where a client looks for its server, without user and password. */
function whereabouts(client: Client): string {
  if (client instanceof Cluster) return 'the nodes of the cluster';
  const { path, host, port, sentinels, name } = client.options;
  if (sentinels) return `the servers of '${name}', or their Sentinels`;
  return path ?? `${host}:${port}`;
}

/** What a server says of its memory, in bytes. `most`: its `maxmemory`; 0: no limit. */
export interface MemoryUse {
  readonly used: number;
  readonly most: number;
}

/** Spoke TLS to a plain port, or plainly to a TLS port. */
class WrongWay extends ConnectionError {}

/** One way to Redis, shared by everything that a Piecework object does there. */
export class Connection {
  readonly client: Client;
  readonly #owned: boolean;
  /** Where it was opened; undefined: the client was given. */
  readonly #input: RedisInput | undefined;
  readonly #slots: SlotMap | undefined;
  #checked: Promise<void> | undefined;
  /** When the server was looked at last, and what was wrong with it then, by our clock. */
  #lookedAt = 0;
  #unfit: ServerError | undefined;
  #trouble = '';

  readonly #noteTrouble = (error: unknown): void => {
    this.#trouble = connectError(error, this.client).message;
  };

  private constructor(client: Client, input?: RedisInput, lookEveryMs = 0) {
    this.client = client;
    this.#input = input;
    const owned = input !== undefined;
    this.#owned = owned;
    this.#slots = client instanceof Cluster ? SlotMap.of(client) : undefined;
    if (!owned) return;
    historyOf(client);
    this.#slots?.care(lookEveryMs);
    if (client instanceof Cluster) retryHangs(client);
    // Without a listener ioredis prints; a broken connection shows in the calls that need it.
    client.on('error', this.#noteTrouble);
    client.on('ready', () => {
      this.#trouble = '';
    });
  }

  /** @throws InvalidOptionError when `input` is none of the forms of RedisInput. Connects at the first call. */
  static open(input: RedisInput): Connection {
    checkInput(input);
    if (typeof input === 'object' && isClient(input)) return new Connection(input);
    const given = typeof input === 'object' && 'nodes' in input ? input.options : undefined;
    const lookEveryMs = given?.slotsRefreshInterval ?? LOOK_AT_SLOTS_MS;
    return new Connection(openClient(input), input, lookEveryMs);
  }

  /**
   * Looks at the server, or at each master: its version and whether it would evict our keys. Who asks again
   * does not wait for another look: one is made beside, every few seconds at most, and what it finds is
   * thrown from then on, until a later one finds it cured.
   * @throws ServerError TOO_OLD, EVICTING, NO_DB, CLUSTER_DOWN · ConnectionError when it cannot be reached.
   */
  async check(): Promise<void> {
    const again = this.#checked !== undefined;
    this.#checked ??= this.#check().catch((error: unknown) => {
      this.#checked = undefined;
      throw error;
    });
    if (again) this.#lookAgain();
    else this.#lookedAt = performance.now();
    await this.#checked;
    if (this.#unfit) throw this.#unfit;
  }

  #lookAgain(): void {
    if (performance.now() - this.#lookedAt < LOOK_AGAIN_MS) return;
    this.#lookedAt = performance.now();
    const { client } = this;
    const servers = client instanceof Cluster ? client.nodes('master') : [client];
    const looks = servers.map(async (server) =>
      refuseUnfit(await within(MASTER_MS, server.info())),
    );
    void Promise.allSettled(looks).then((ended) => {
      const reasons = ended.map((look) => (look.status === 'rejected' ? look.reason : undefined));
      const unfit = reasons.find((reason) => reason instanceof ServerError);
      // A server that could not be asked, as a user without the right cannot, has not changed for all we know.
      if (unfit || reasons.every((reason) => reason === undefined)) this.#unfit = unfit;
    });
  }

  async #check(): Promise<void> {
    const { client } = this;
    if (this.#owned && (client.status === 'wait' || this.#isInVain())) await this.#connect();
    if (client instanceof Cluster) return this.#checkMasters(client);
    const asked = this.#withinLimit(client.info());
    const info = await (this.#wasReached() ? asked : this.#notWrongWay(asked));
    if (isLoading(info)) throw loading();
    refuseUnfit(info);
    await this.#checkDb(client);
    if (infoField(info, 'cluster_enabled') === '1') await this.#checkAlone(client);
  }

  /** Whoever answers for a cluster is any of its nodes; each has settings of its own. */
  async #checkMasters(cluster: Cluster): Promise<void> {
    if (cluster.status !== 'ready') await this.#untilReady(() => cluster.info());
    const infos = await Promise.all(
      // What cannot be asked, as in a failover, holds no keys of ours now either.
      cluster.nodes('master').map((master) => within(MASTER_MS, master.info()).catch(() => '')),
    );
    const told = infos.filter((info) => info !== '');
    if (told.length === 0) told.push(await this.#withinLimit(cluster.info()));
    for (const info of told) refuseUnfit(info);
  }

  async #withinLimit<T>(call: Promise<T>): Promise<T> {
    // Of a client that was given nothing is heard but now: its errors are its owner's.
    if (!this.#owned) this.client.on('error', this.#noteTrouble);
    try {
      return await within(CHECK_MS, call, whereabouts(this.client));
    } catch (error) {
      throw await this.explained(redisError(error, 'connect'));
    } finally {
      if (!this.#owned) {
        this.client.off('error', this.#noteTrouble);
        this.#trouble = '';
      }
    }
  }

  /** Whether it was ever connected; of a client that was given, since it was. */
  #wasReached(): boolean {
    return !this.#owned || historyOf(this.client).arrivals > 0;
  }

  /**
   * Whether no server was ever found, and ioredis goes on trying: another attempt tells then at once, as the
   * first did. A cluster may be one that is not whole yet, and is waited for.
   */
  #isInVain(): boolean {
    const { client } = this;
    const tries = client.status === 'reconnecting' || client.status === 'connecting';
    return tries && !(client instanceof Cluster) && !this.#wasReached();
  }

  /** What was told last of why it is not connected stands in the error as well. */
  #withTrouble(error: ConnectionError): ConnectionError {
    const why = this.#trouble.replace(/^connect: /, '');
    if (why === '' || error.message.includes(why)) return error;
    return new ConnectionError(`${error.message}: ${why}`);
  }

  /**
   * When it could not be reached: that a cluster is down, or a server loads, if that is why. Else the error,
   * with what is known of why.
   */
  async explained(error: PieceworkError): Promise<PieceworkError> {
    const { client } = this;
    if (!(error instanceof ConnectionError)) return error;
    if (!(client instanceof Cluster)) {
      // Connected, and not ready: ioredis waits in silence; INFO is sent and answered even so.
      const asks = client.status === 'connect';
      const info = asks ? await within(LOADING_MS, client.info()).catch(() => '') : '';
      return isLoading(info) ? loading() : this.#withTrouble(error);
    }
    const why = await whyDown(client);
    if (why === undefined) return this.#withTrouble(error);
    const message = `the cluster is down: ${why}. A replica that takes over, or its master that comes back, brings it up; \`piecework doctor\` tells more`;
    return new ServerError(message, { code: 'CLUSTER_DOWN', retryable: true, cause: error });
  }

  /** One attempt tells: whoever begins learns at once that there is no Redis. */
  async #connect(): Promise<void> {
    let why: unknown;
    let giveUp = (_: unknown) => {};
    const inVain = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const note = (error: unknown) => {
      why ??= error;
      // ioredis asks its Sentinels round and round, and calls that one attempt.
      if (askedInVain(error)) giveUp(error);
    };
    const { client } = this;
    client.on('error', note);
    const connecting = this.#untilReady(() => Promise.race([this.#attempt(), inVain]));
    try {
      await this.#notWrongWay(connecting);
    } catch (error) {
      if (error instanceof WrongWay) throw error;
      const known = why === undefined ? error : connectError(why, client);
      const way = known instanceof ConnectionError ? await this.#wrongWay() : undefined;
      throw way ?? known;
    } finally {
      client.off('error', note);
    }
  }

  /** Rejects when the attempt is over that is under way, or else begins now, ahead of the next of ioredis. */
  #attempt(): Promise<unknown> {
    const { client } = this;
    if (client.status === 'connecting')
      return new Promise((_, reject) => {
        client.once('close', () => reject(new Error('Connection is closed.')));
      });
    const waiting = client as unknown as { reconnectTimeout?: NodeJS.Timeout | null };
    // It would go on trying beside those that follow this one.
    clearTimeout(waiting.reconnectTimeout ?? undefined);
    return client.connect();
  }

  /** A server that is spoken to with TLS where it speaks none answers nothing: it is not waited for. */
  async #notWrongWay<T>(connecting: Promise<T>): Promise<T> {
    const over = new AbortController();
    const doubt = async () => {
      await pause(DOUBT_MS, over.signal);
      const way = over.signal.aborted ? undefined : await this.#wrongWay();
      if (way) throw way;
      return connecting;
    };
    try {
      return await Promise.race([connecting, doubt()]);
    } finally {
      over.abort();
    }
  }

  async #wrongWay(): Promise<WrongWay | undefined> {
    const why = this.#input === undefined ? undefined : await wrongWay(this.#input);
    return why === undefined ? undefined : new WrongWay(`connect: ${why}`);
  }

  /** A cluster that is found not to be whole is tried again, of which who began the first try hears nothing. */
  async #untilReady(begin: () => Promise<unknown>): Promise<void> {
    const { client } = this;
    let onReady = () => {};
    const ready = new Promise<void>((resolve) => {
      onReady = resolve;
      client.once('ready', onReady);
    });
    try {
      await this.#withinLimit(Promise.race([begin(), ready]));
    } finally {
      client.off('ready', onReady);
    }
  }

  /**
   * ioredis goes on with db 0 when the server refuses the one it is told to take. Of a client that was given,
   * that is the one its owner took last.
   */
  async #checkDb(client: Redis): Promise<void> {
    const db = dbOf(client);
    if (db !== 0) await this.#withinLimit(client.select(db));
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

  /** Another number behind each new connection: the server there may have lost what was answered before. */
  get epoch(): number {
    const { arrivals, losses } = historyOf(this.client);
    return arrivals + losses;
  }

  /** Why it is not connected now, as far as a client of ours told; '' when it is. */
  get trouble(): string {
    return this.#trouble;
  }

  /** Whether Sentinels name the server, which may be another one soon. */
  get hasSentinels(): boolean {
    return !(this.client instanceof Cluster) && (this.client.options.sentinels?.length ?? 0) > 0;
  }

  /** Whether all keys are behind one connection, which carries commands out in the order of sending. */
  get isOneServer(): boolean {
    return !(this.client instanceof Cluster);
  }

  /**
   * Begins to look at the connection. `reached`: whether anything could be sent at any time since ·
   * `lost`: whether a node of the cluster was lost since, to which the client may have sent what it then
   * sent again to another by itself.
   */
  watchReach(): { reached(): boolean; lost(): boolean } {
    const { client } = this;
    const { arrivals, losses } = historyOf(client);
    const ready = client.status === 'ready';
    return {
      reached: () => ready || historyOf(client).arrivals > arrivals,
      lost: () => historyOf(client).losses > losses,
    };
  }

  /**
   * A plain client of its own to the server that holds `key` (in a cluster: the master of its hash
   * slot), for what may not share a connection: blocking pops and subscriptions. The caller closes it.
   */
  async openFor(key: string, options: RedisOptions): Promise<{ client: Redis; address: string }> {
    const address = await this.addressOf(key);
    return { client: this.openAt(address, options), address };
  }

  /** The same to a server that is known, as `addressOf` or a redirection names it. */
  openAt(address: string, options: RedisOptions): Redis {
    const slots = this.#slots;
    const client = slots
      ? slots.openAt(slots.mapped(address), options)
      : (this.client as Redis).duplicate({
          db: dbOf(this.client as Redis),
          ...options,
          protocol: 2,
          lazyConnect: true,
        } as RedisOptions);
    client.on('error', () => {});
    return client;
  }

  /** Which server holds `key`: 'standalone', or 'host:port' of the master of its hash slot. */
  async addressOf(key: string): Promise<string> {
    return this.#slots ? this.#slots.addressOf(key) : 'standalone';
  }

  /** The same as far as it is known now. */
  knownAddressOf(key: string): string | undefined {
    return this.#slots ? this.#slots.known(key) : 'standalone';
  }

  /**
   * How full the server at this address is, as `knownAddressOf` names it, by what counts against `maxmemory`;
   * undefined: not known, as of one that is not connected. Rejects when it does not answer or refuses to.
   */
  async memoryOf(address: string): Promise<MemoryUse | undefined> {
    const { client } = this;
    const is = ({ options: { host, port } }: Redis) => `${host}:${port}` === address;
    const server = client instanceof Cluster ? client.nodes('master').find(is) : client;
    if (!server) return undefined;
    const info = await server.info('memory');
    const number = (name: string) => Number(infoField(info, name)) || 0;
    // Buffers of replicas and of the append-only file do not count.
    const used = number('used_memory') - number('mem_not_counted_for_evict');
    return { used, most: number('maxmemory') };
  }

  /** Whether the server at this address holds any hash slot, as far as it is known now. */
  isMaster(address: string): boolean {
    return this.#slots?.isMaster(address) ?? true;
  }

  /** Asks a cluster which server holds what, as when one is gone; never rejects. */
  async lookAtSlots(): Promise<void> {
    await this.#slots?.refresh();
  }

  /** Calls back when it is known anew which server holds what; answers how to stop that. */
  onLookAtSlots(listener: () => void): () => void {
    return this.#slots?.onLook(listener) ?? (() => {});
  }

  /** Closes the client at once, ours or not; whatever is under way fails. */
  cut(): void {
    const { client } = this;
    if (client instanceof Cluster) {
      cutCluster(client);
      return;
    }
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
    if (this.client instanceof Cluster && this.client.nodes().length === 0) return this.cut();
    await this.client.quit().catch(() => this.client.disconnect());
  }

  /**
   * Closes the client if it is ours, `behind` what is under way; cuts it when the server does not answer
   * for 5 s, or is away: whatever is under way fails then. A client that was passed in is left with it.
   */
  async closeSoon(behind: Promise<unknown> = Promise.resolve()): Promise<void> {
    const closing = behind.then(() => this.close());
    const fallback = async () => {
      if (!this.#owned) return;
      this.cut();
      await closing;
    };
    const away =
      this.client.status === 'reconnecting' || (this.#trouble !== '' && this.#isInVain());
    const milliseconds = away ? 1 : CLOSE_MS;
    await pTimeout(closing, { milliseconds, fallback });
  }
}
