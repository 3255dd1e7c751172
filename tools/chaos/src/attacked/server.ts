import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type EmbeddedRedis,
  findServer,
  type ServerProgram,
  startRedis,
} from '@piecework/embedded';
import { type Cluster, Redis } from 'ioredis';
import { BadNetwork } from './bad-network.js';
import { clockMaker, type ServerClock } from './server-clock.js';

export type Fsync = 'always' | 'everysec' | 'no';

/** The server or cluster under attack, as the observer reads it. */
export interface Watched {
  /** Connects directly, past the proxies. */
  readonly client: Redis | Cluster;
  /** Clients of the masters that are up. */
  masters(): Promise<Redis[]>;
}

/** Memory of the data and buffers of all masters together, in bytes. */
export async function usedMemory(watched: Watched): Promise<number> {
  let bytes = 0;
  for (const master of await watched.masters())
    bytes += Number(/^used_memory:(\d+)/m.exec(await master.info('memory'))?.[1]);
  return bytes;
}

export async function* keysOf(watched: Watched): AsyncIterable<string[]> {
  for (const master of await watched.masters())
    yield* master.scanStream({ count: 1_000 }) as AsyncIterable<string[]>;
}

/**
 * Writes that a server acknowledged and its successor does not have. The successor has the writes that were
 * acknowledged before `sureNs`, and those that were requested after `goneNs`. Nanoseconds on the machine's monotonic
 * clock.
 */
export interface LostWrites {
  readonly sureNs: bigint;
  readonly goneNs: bigint;
}

interface Instance {
  readonly redis: EmbeddedRedis;
  readonly dir: string;
  readonly clock: ServerClock | undefined;
}

/** The Redis under attack: killed and started again, or replaced, always on the same port. */
export class AttackedServer implements Watched, AsyncDisposable {
  readonly port: number;
  /** Connects directly, past the proxies. Its calls fail at once while the server is away. */
  readonly client: Redis;
  readonly #folder: string;
  readonly #fsync: Fsync;
  readonly #program: ServerProgram;
  readonly #makeClock: (() => ServerClock) | undefined;
  #instance: Instance;
  #replicas = 0;

  private constructor(
    instance: Instance,
    parts: {
      folder: string;
      fsync: Fsync;
      program: ServerProgram;
      makeClock: (() => ServerClock) | undefined;
    },
  ) {
    this.#instance = instance;
    this.#folder = parts.folder;
    this.#fsync = parts.fsync;
    this.#program = parts.program;
    this.#makeClock = parts.makeClock;
    this.port = instance.redis.port;
    this.client = connect(this.port);
  }

  /** @param stepsClock whether its clock will be stepped; `hasClock` says whether that is possible */
  static async start(folder: string, fsync: Fsync, stepsClock = false): Promise<AttackedServer> {
    const program = await findServer();
    const makeClock = stepsClock ? await clockMaker(folder) : undefined;
    const clock = makeClock?.();
    const dir = join(folder, 'redis');
    const redis = await startRedis({
      password: '',
      ...settings(dir, fsync),
      server: clock?.program(program) ?? program,
    });
    const make = (maker: typeof makeClock) =>
      new AttackedServer(
        { redis, dir, clock: maker && clock },
        { folder, fsync, program, makeClock: maker },
      );
    let server = make(makeClock);
    if (clock && !(await server.#obeys(clock))) {
      server.client.disconnect();
      server = make(undefined);
    }
    await server.#answers();
    return server;
  }

  /** Whether its clock can be stepped: it takes a C compiler, and a server that is no container. */
  get hasClock(): boolean {
    return this.#makeClock !== undefined;
  }

  /** How far its clock is ahead of the right time, in ms; less than 0: behind. */
  get offsetMs(): number {
    return this.#instance.clock?.offsetMs ?? 0;
  }

  stepClock(offsetMs: number): void {
    this.#instance.clock?.set(offsetMs);
  }

  async #obeys(clock: ServerClock): Promise<boolean> {
    const asked = 7_200_000;
    clock.set(asked);
    while (this.client.status !== 'ready') await sleep(10);
    const [seconds] = await this.client.time();
    clock.set(0);
    return Math.abs(Number(seconds) * 1_000 - Date.now() - asked) < asked / 2;
  }

  async kill(): Promise<void> {
    await this.#instance.redis.kill('SIGKILL');
    await this.#instance.redis.ended;
  }

  startAgain(): Promise<void> {
    return this.#startOn({});
  }

  /** Stops it for this time; it answers afterwards what was sent meanwhile. */
  async freeze(ms: number): Promise<void> {
    const { redis } = this.#instance;
    await redis.kill('SIGSTOP');
    try {
      await sleep(ms);
    } finally {
      await redis.kill('SIGCONT');
    }
  }

  /**
   * Kills the server. After `awayMs` a replica that has received nothing for `lagMs` takes its place.
   * @param offsetMs offset of the replica's clock
   */
  async promote(parts: {
    lagMs: number;
    awayMs: number;
    offsetMs: number;
    onLost: (lost: LostWrites) => void;
  }): Promise<void> {
    const link = await BadNetwork.open({ name: 'net-replica', toPort: this.port });
    this.#replicas += 1;
    const dir = join(this.#folder, `redis-${this.#replicas}`);
    const clock = this.#makeClock?.();
    clock?.set(parts.offsetMs);
    const { args, ...rest } = settings(dir, this.#fsync);
    const redis = await startRedis({
      password: '',
      ...rest,
      args: [...args, '--replicaof', `127.0.0.1 ${Number(new URL(link.url).port)}`],
      server: clock?.program(this.#program) ?? this.#program,
    });
    const replica = connect(redis.port);
    try {
      const isUp = (info: string) => info.includes('master_link_status:up');
      await until(async () => isUp(await replica.info('replication')));
      await writesFile(replica);
      const followed = async () => {
        const sureNs = process.hrtime.bigint();
        const wanted = offsetIn(await this.client.info('replication'), 'master_repl_offset');
        const offset = async () => offsetIn(await replica.info('replication'), 'slave_repl_offset');
        await until(async () => (await offset()) >= wanted);
        return sureNs;
      };
      // The first time it waits for the end of the initial transfer, which takes a while.
      await followed();
      const sureNs = await followed();
      link.swallow('from redis');
      await sleep(parts.lagMs);
      await this.kill();
      parts.onLost({ sureNs, goneNs: process.hrtime.bigint() });
      await sleep(parts.awayMs);
      await replica.replicaof('NO', 'ONE');
      await replica.config('SET', 'port', this.port);
      this.#instance = { redis, dir, clock };
    } finally {
      replica.disconnect();
      await link[Symbol.asyncDispose]();
      if (this.#instance.redis !== redis) await redis.close();
    }
    await this.#answers();
  }

  /** Kills the server and restarts it from its data of `ageMs` before, as with a server that only saves snapshots. */
  async restoreSnapshot(parts: {
    ageMs: number;
    awayMs: number;
    onLost: (lost: LostWrites) => void;
  }): Promise<void> {
    const sureNs = process.hrtime.bigint();
    const saving = async () => (await this.client.info('persistence')).includes('in_progress:1');
    await until(async () => !(await saving()));
    await this.client.bgsave();
    await until(async () => !(await saving()));
    const sinceMs = Number(process.hrtime.bigint() - sureNs) / 1e6;
    await sleep(Math.max(0, parts.ageMs - sinceMs));
    await this.kill();
    parts.onLost({ sureNs, goneNs: process.hrtime.bigint() });
    await sleep(parts.awayMs);
    await this.#startOn({ isSnapshot: true });
    // The next kill has to find a server with an append-only file again.
    await this.client.config('SET', 'appendonly', 'yes');
    await writesFile(this.client);
  }

  async #startOn({ isSnapshot = false }): Promise<void> {
    const { port } = this;
    const { dir, clock } = this.#instance;
    const { persistence, args } = settings(dir, this.#fsync);
    const redis = await startRedis({
      password: '',
      ...{ dir, args, port, persistence: isSnapshot ? 'none' : persistence },
      server: clock?.program(this.#program) ?? this.#program,
    });
    this.#instance = { redis, dir, clock };
    await this.#answers();
  }

  /** Waits until the client has reconnected: the next fault uses it. */
  async #answers(): Promise<void> {
    while (this.client.status !== 'ready') await sleep(10);
  }

  async masters(): Promise<Redis[]> {
    return [this.client];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    await this.#instance.redis.close();
  }
}

function connect(port: number): Redis {
  const client = new Redis({
    host: '127.0.0.1',
    port,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 100,
  });
  client.on('error', () => {});
  return client;
}

/** Waits until the condition holds; an error counts as no. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition().catch(() => false))) await sleep(2);
}

/** Waits until its append-only file has all of its data, so that it can be restarted from it. */
async function writesFile(client: Redis): Promise<void> {
  await until(async () => {
    const info = await client.info('persistence');
    return /aof_enabled:1/.test(info) && !/aof_rewrite_(in_progress|scheduled):1/.test(info);
  });
}

const offsetIn = (info: string, name: string): number =>
  Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);

function settings(dir: string, fsync: Fsync) {
  const args = ['--appendfsync', fsync, '--repl-diskless-sync-delay', '0'];
  return { dir, persistence: 'aof', args } as const;
}
