import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type EmbeddedRedis,
  findServer,
  type ServerProgram,
  startRedis,
} from '@piecework/embedded';
import { Redis } from 'ioredis';
import type { LostWrites } from '../attacked/server.js';

const NAME = 'watched';
const HOST = '127.0.0.1';
/**
 * How long a change may take, in ms. A Sentinel that was held up for 2 s does nothing for 30 s (TILT), and the next failover
 * waits for twice the time-out of one that failed.
 */
const PATIENCE_MS = 120_000;

export interface WatchedOptions {
  readonly replicas?: number;
  /** How many Sentinels watch; more than half of them have to agree on a failover. */
  readonly sentinels?: number;
  /** Settings of every server, as arguments. */
  readonly args?: readonly string[];
}

/** A master, its replicas and the Sentinels that watch them, all on loopback. */
export interface Watched extends AsyncDisposable {
  /** What to pass as `redis`. */
  readonly input: { sentinels: { host: string; port: number }[]; name: string };
  /** A client of the first Sentinel. */
  readonly sentinel: Redis;
  readonly servers: readonly EmbeddedRedis[];
  /** Port of the server that the first Sentinel names as master. */
  masterPort(): Promise<number>;
  /** Asks Sentinel to make another server the master; answers its port once all Sentinels name it. */
  handOver(): Promise<number>;
  /**
   * Kills the master; answers the port of the next one once all Sentinels name it. `onLost` hears at once which writes
   * the next one may lack.
   */
  killMaster(onLost?: (lost: LostWrites) => void): Promise<number>;
  /** Starts an empty server at the port of one that was killed, as a replica of the master. */
  startAgain(port: number): Promise<void>;
}

export async function startWatched({
  replicas = 1,
  sentinels = 1,
  args = [],
}: WatchedOptions = {}): Promise<Watched> {
  const closes: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const one of closes.reverse()) await one();
  };
  try {
    return {
      ...(await watched({ replicas, sentinels, args }, closes)),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function watched(
  { replicas, sentinels, args }: Required<WatchedOptions>,
  closes: (() => Promise<unknown>)[],
): Promise<Omit<Watched, keyof AsyncDisposable>> {
  const start = async (more: readonly string[], port?: number) => {
    const at = port === undefined ? {} : { port };
    const server = await startRedis({
      ...{ ...at, password: '', persistence: 'aof' },
      args: [...args, ...more],
    });
    closes.push(() => server.close());
    return server;
  };
  const master = await start([]);
  const servers = [master];
  for (let i = 0; i < replicas; i += 1)
    servers.push(await start(['--replicaof', HOST, String(master.port)]));
  const watching: { port: number; client: Redis }[] = [];
  for (let i = 0; i < sentinels; i += 1) {
    const server = await sentinelProgram(master.port, Math.floor(sentinels / 2) + 1);
    const { port, close } = await startRedis({ server, password: '' });
    const client = new Redis({ host: HOST, port, enableReadyCheck: false });
    client.on('error', () => {});
    closes.push(async () => {
      client.disconnect();
      await close();
    });
    watching.push({ port, client });
  }
  const [first] = watching as [{ port: number; client: Redis }];
  const addressIn = async (client: Redis) => {
    const found = await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
    return Number((found as string[])[1]);
  };
  // A Sentinel can hand over only to a replica that it knows, and needs the votes of the others.
  const isReady = async ({ client }: { client: Redis }) => {
    const known = (await client.call('SENTINEL', 'REPLICAS', NAME)) as string[][];
    const others = (await client.call('SENTINEL', 'SENTINELS', NAME)) as string[][];
    const usable = known.filter((one) => one.includes('slave') && one.includes('ok'));
    return usable.length === replicas && others.length === sentinels - 1;
  };
  for (const one of watching) await until(() => isReady(one));
  /** Once all Sentinels name the same other master. */
  const isNow = async (former: number) => {
    let port = former;
    await until(async () => {
      const ports = await Promise.all(watching.map(({ client }) => addressIn(client)));
      [port = former] = ports;
      return port !== former && ports.every((one) => one === port);
    });
    return port;
  };
  return {
    input: { sentinels: watching.map(({ port }) => ({ host: HOST, port })), name: NAME },
    sentinel: first.client,
    servers,
    masterPort: () => addressIn(first.client),
    async handOver() {
      const former = await addressIn(first.client);
      // It refuses while the failover before is still under way.
      await until(async () => {
        const reply = await first.client.call('SENTINEL', 'FAILOVER', NAME).catch(() => 'refused');
        return reply === 'OK';
      });
      return isNow(former);
    },
    async killMaster(onLost = () => {}) {
      const former = await addressIn(first.client);
      const direct = new Redis({ host: HOST, port: former });
      direct.on('error', () => {});
      let sureNs = process.hrtime.bigint();
      // WAIT is about all that the server had written when this connection sent its last command.
      await until(async () => {
        sureNs = process.hrtime.bigint();
        await direct.ping();
        return (await direct.wait(replicas, 1_000)) === replicas;
      });
      direct.disconnect();
      const server = servers.find(({ port }) => port === former);
      await server?.kill('SIGKILL');
      await server?.ended;
      onLost({ sureNs, goneNs: process.hrtime.bigint() });
      return isNow(former);
    },
    async startAgain(port) {
      const master = await addressIn(first.client);
      const server = await start(['--replicaof', HOST, String(master)], port);
      servers[servers.findIndex((one) => one.port === port)] = server;
    },
  };
}

/** The program as Sentinel, which writes into its file what it learns. */
async function sentinelProgram(masterPort: number, quorum: number): Promise<ServerProgram> {
  const { origin, command } = await findServer();
  return {
    origin,
    title: 'Sentinel',
    command(place) {
      const { dir, port } = place;
      const { file: program, env } = command(place);
      const file = join(dir, 'sentinel.conf');
      const lines = [
        ...[`port ${port}`, `bind ${HOST}`, `dir ${dir}`],
        `sentinel monitor ${NAME} ${HOST} ${masterPort} ${quorum}`,
        `sentinel down-after-milliseconds ${NAME} 3000`,
        `sentinel failover-timeout ${NAME} 10000`,
      ];
      writeFileSync(file, lines.join('\n'));
      return { file: program, args: [file, '--sentinel'], env };
    },
  };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error('the servers behind Sentinel do not get ready');
    await sleep(50);
  }
}
