import pTimeout from 'p-timeout';
import { pause } from '../common/waiting.js';
import { ConnectionError, PieceworkError, ServerError } from '../contract/errors.js';
import { type Client, isCluster } from './client.js';
import { historyOf } from './cluster/cluster-client.js';
import { whyDown, whyNoCluster } from './cluster/cluster-state.js';
import type { Cluster, Redis } from './ioredis.js';
import { sentinelsFailed } from './ioredis-internals/error-texts.js';
import { cancelReconnect, selectedDb } from './ioredis-internals/node-internals.js';
import type { Where } from './open-client.js';
import { redisError } from './redis-error.js';
import { connectError } from './sentinel-error.js';
import { infoField, isLoading, loadingError, refuseUnfit } from './server-info.js';
import { wrongWay } from './tls-probe.js';

/** How long the first check of a server may take, in ms. */
const CHECK_MS = 10_000;
/** How long the check of one master of several may take, in ms. */
const MASTER_MS = 2_000;
/** How long the check of a server that may be loading its data may take, in ms. */
const LOADING_MS = 1_000;
/** How long the result of a check is used before another one is made, in ms. */
const CHECK_AGAIN_MS = 3_000;
/** A server that has not answered for so long may expect TLS, or not expect it, in ms. */
const DOUBT_MS = 1_000;
/** Bounds a call, as a server may accept a connection and never answer. `where`: the server, for the message. */
function within<T>(milliseconds: number, call: Promise<T>, where = ''): Promise<T> {
  const from = where === '' ? '' : ` from ${where}`;
  const message = new NoAnswer(`connect: no answer within ${milliseconds / 1_000} s${from}`);
  return pTimeout(call, { milliseconds, message });
}

class NoAnswer extends ConnectionError {
  readonly #what: string;

  /** @param what happened, without a reason */
  constructor(what: string) {
    super(
      `${what}: it accepts connections and does not answer; see that its process is not stopped or busy, then try again`,
    );
    this.#what = what;
  }

  /** The same of a server that does not even accept them. */
  because(why: string): ConnectionError {
    return new ConnectionError(`${this.#what}: ${why}`);
  }
}

/** Where a client connects to, without user and password. */
function whereabouts(client: Client): string {
  if (isCluster(client)) return 'the nodes of the cluster';
  const { path, host, port, sentinels, name } = client.options;
  if (sentinels) return `the servers of '${name}', or their Sentinels`;
  return path ?? `${host}:${port}`;
}

/** Refuses nodes that are not nodes of one cluster. */
async function refuseNoCluster(cluster: Cluster): Promise<void> {
  const why = await whyNoCluster(cluster);
  if (why !== undefined) throw new ServerError(why, { code: 'CLUSTER' });
}

/** We used TLS to a plain port, or no TLS to a TLS port. */
class WrongWay extends ConnectionError {}

/**
 * Connects a client for the first time, and checks that its server can be used. When it cannot, the check finds out
 * why: no server, wrong port or protocol, a cluster that is down, a version that is too old, a policy that evicts keys.
 */
export class ServerCheck {
  readonly client: Client;
  readonly #owned: boolean;
  /** Where the client was opened; undefined: it was passed in. */
  readonly #input: Where | undefined;
  #checked: Promise<void> | undefined;
  #isChecked = false;
  /** When the last check began, by the clock of this process, and what it found wrong. */
  #checkedAt = 0;
  #unfit: ServerError | undefined;
  #trouble = '';

  readonly #noteTrouble = (error: unknown): void => {
    this.#trouble = connectError(error, this.client).message;
  };

  constructor(client: Client, input: Where | undefined) {
    this.client = client;
    this.#input = input;
    this.#owned = input !== undefined;
    if (!this.#owned) return;
    // Without a listener ioredis prints errors. A broken connection shows in the calls that need it.
    client.on('error', this.#noteTrouble);
    client.on('ready', () => {
      this.#trouble = '';
    });
  }

  /** Why the client is not connected now, as it reported it; '' when it is, or was passed in. */
  get trouble(): string {
    return this.#trouble;
  }

  /**
   * Checks the server, or each master: its version, and whether it could evict our keys. A repeated call does not
   * wait for another check. It starts one in the background, every few seconds at most; from then on `check` throws
   * what that one found, until a later one finds it cured.
   * @throws ServerError TOO_OLD, EVICTING, NO_DB, CLUSTER, CLUSTER_DOWN · ConnectionError when it cannot be reached.
   */
  async check(): Promise<void> {
    const again = this.#checked !== undefined;
    this.#checked ??= this.#check().catch((error: unknown) => {
      this.#checked = undefined;
      throw error;
    });
    if (again) /* cure: a repeated check reads the settings of a server again */ this.#checkAgain();
    else this.#checkedAt = performance.now();
    await this.#checked;
    this.#isChecked = true;
    if (this.#unfit) throw this.#unfit;
  }

  /** Whether `check` would succeed at once, as it did before; starts the same checks in the background. */
  get isChecked(): boolean {
    if (!this.#isChecked) return false;
    // cure: the settings of a server are checked again
    this.#checkAgain();
    return this.#unfit === undefined;
  }

  #checkAgain(): void {
    if (performance.now() - this.#checkedAt < CHECK_AGAIN_MS) return;
    this.#checkedAt = performance.now();
    const { client } = this;
    const servers = isCluster(client) ? client.nodes('master') : [client];
    const checks = servers.map(async (server) =>
      refuseUnfit(await within(MASTER_MS, server.info())),
    );
    void Promise.allSettled(checks).then((ended) => {
      const reasons = ended.map((one) => (one.status === 'rejected' ? one.reason : undefined));
      const unfit = reasons.find((reason) => reason instanceof ServerError);
      // Without an answer, such as to a user without the right to ask, we assume that nothing has changed.
      if (unfit || reasons.every((reason) => reason === undefined)) this.#unfit = unfit;
    });
  }

  async #check(): Promise<void> {
    const { client } = this;
    if (this.#owned && isCluster(client)) await refuseNoCluster(client);
    if (this.#owned && (client.status === 'wait' || this.isInVain)) await this.#connect();
    if (isCluster(client)) return this.#checkMasters(client);
    const asked = this.#withinLimit(client.info());
    const info = await (this.#wasReached() ? asked : this.#notWrongWay(asked));
    if (isLoading(info)) throw loadingError();
    refuseUnfit(info);
    await this.#checkDb(client);
    if (infoField(info, 'cluster_enabled') === '1') await this.#checkSingleMaster(client);
  }

  /** Checks every master, as each has settings of its own. */
  async #checkMasters(cluster: Cluster): Promise<void> {
    if (cluster.status !== 'ready') await this.#untilReady(() => cluster.info());
    const infos = await Promise.all(
      // A master that cannot be asked, as in a failover, serves none of our keys now either.
      cluster.nodes('master').map((master) => within(MASTER_MS, master.info()).catch(() => '')),
    );
    const answers = infos.filter((info) => info !== '');
    if (answers.length === 0) answers.push(await this.#withinLimit(cluster.info()));
    for (const info of answers) refuseUnfit(info);
  }

  async #withinLimit<T>(call: Promise<T>): Promise<T> {
    // We listen to a client that was passed in only during a check: its errors belong to its owner.
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

  /** Whether it was ever connected. A client that was passed in counts as connected. */
  #wasReached(): boolean {
    return !this.#owned || historyOf(this.client).arrivals > 0;
  }

  /**
   * Whether no server was ever reached and ioredis keeps trying. Another attempt then fails at once, as the first did.
   * A cluster is waited for: it may be one that is still forming.
   */
  get isInVain(): boolean {
    const { client } = this;
    const tries = client.status === 'reconnecting' || client.status === 'connecting';
    return tries && !isCluster(client) && !this.#wasReached();
  }

  /** Adds to the error why the client is not connected, as the client last reported it. */
  #withTrouble(error: ConnectionError): ConnectionError {
    const why = this.#trouble.replace(/^connect: /, '');
    if (why === '' || error.message.includes(why)) return error;
    if (error instanceof NoAnswer && this.client.status !== 'connect') return error.because(why);
    return new ConnectionError(`${error.message}: ${why}`);
  }

  /**
   * Explains an error of a connection: the cluster is down, or the server is loading its data, if that is the cause.
   * Otherwise the same error, with what the client reported of the cause.
   */
  async explained(error: PieceworkError): Promise<PieceworkError> {
    const { client } = this;
    if (!(error instanceof ConnectionError)) return error;
    if (!isCluster(client)) {
      // Connected and not ready: ioredis waits without a report, yet sends INFO, which the server answers.
      const asks = client.status === 'connect';
      const info = asks ? await within(LOADING_MS, client.info()).catch(() => '') : '';
      return isLoading(info) ? loadingError() : this.#withTrouble(error);
    }
    const why = await whyDown(client);
    if (why === undefined) return this.#withTrouble(error);
    if (why instanceof Error) return connectError(why, client);
    const message = `the cluster is down: ${why}. A replica that takes over, or its master that comes back, brings it up; \`piecework doctor\` tells more`;
    return new ServerError(message, { code: 'CLUSTER_DOWN', retryable: true, cause: error });
  }

  /** Connects with one attempt, so that the caller learns at once that there is no Redis. */
  async #connect(): Promise<void> {
    let why: unknown;
    let giveUp = (_: unknown) => {};
    const inVain = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    const note = (error: unknown) => {
      why ??= error;
      // ioredis asks its Sentinels again and again within one attempt.
      if (sentinelsFailed(error)) giveUp(error);
    };
    const { client } = this;
    client.on('error', note);
    const connecting = this.#untilReady(() => Promise.race([this.#attempt(), inVain]));
    try {
      await this.#notWrongWay(connecting);
    } catch (error) {
      if (error instanceof WrongWay) throw error;
      const said = why === undefined ? error : connectError(why, client);
      const known =
        isCluster(client) && said instanceof PieceworkError ? await this.explained(said) : said;
      const way = known instanceof ConnectionError ? await this.#wrongWay() : undefined;
      throw way ?? known;
    } finally {
      client.off('error', note);
    }
  }

  /**
   * Waits for the attempt that is in progress, or makes one now, ahead of the next of ioredis. Rejects when it fails.
   */
  #attempt(): Promise<unknown> {
    const { client } = this;
    if (client.status === 'connecting')
      return new Promise((_, reject) => {
        client.once('close', () => reject(new Error('Connection is closed.')));
      });
    // The scheduled attempts would otherwise continue beside those that follow this one.
    if (!isCluster(client)) cancelReconnect(client);
    return client.connect();
  }

  /** A server without TLS does not answer a client with TLS, and the reverse: then we do not wait for it. */
  async #notWrongWay<T>(connecting: Promise<T>): Promise<T> {
    const ended = new AbortController();
    const doubt = async () => {
      await pause(DOUBT_MS, ended.signal);
      const way = ended.signal.aborted ? undefined : await this.#wrongWay();
      if (way) throw way;
      return connecting;
    };
    try {
      return await Promise.race([connecting, doubt()]);
    } finally {
      ended.abort();
    }
  }

  async #wrongWay(): Promise<WrongWay | undefined> {
    const why = this.#input === undefined ? undefined : await wrongWay(this.#input);
    return why === undefined ? undefined : new WrongWay(`connect: ${why}`);
  }

  /**
   * Waits until the client is ready. ioredis retries a cluster that is still forming without telling the first caller.
   */
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
   * Selects the db, as ioredis silently uses db 0 when the server refuses the configured one. For a client that was
   * passed in it is the db that its owner selected last.
   */
  async #checkDb(client: Redis): Promise<void> {
    const db = selectedDb(client);
    if (db !== 0) await this.#withinLimit(client.select(db));
  }

  /** Refuses a plain client to one master of several: it cannot reach the hash slots of the others. */
  async #checkSingleMaster(client: Redis): Promise<void> {
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
}
