import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedRedis, findServer, startRedis } from '@piecework/embedded';
import { Redis } from 'ioredis';
import { type Supervised, supervise } from '../../packages/embedded/dist/supervise.js';
import { onFreePort } from './on-free-port.js';
import { until } from './until.js';

/** A master, a replica of it and a Sentinel that watches them, all on loopback. */
export interface Watched extends AsyncDisposable {
  /** What to pass as `redis`. */
  readonly input: { sentinels: { host: string; port: number }[]; name: string };
  /** A client of the Sentinel. */
  readonly sentinel: Redis;
  readonly servers: readonly EmbeddedRedis[];
  /** Port of the server that Sentinel names as master. */
  masterPort(): Promise<number>;
}

const NAME = 'watched';
const HOST = '127.0.0.1';

export async function startWatched(): Promise<Watched> {
  const master = await startRedis({ persistence: 'aof' });
  const replica = await startRedis({
    persistence: 'aof',
    args: ['--replicaof', HOST, String(master.port)],
  });
  const servers = [master, replica];
  const { port, supervised, sentinel } = await onFreePort((port) => startSentinel(port, master));
  const masterPort = async () => {
    const found = await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
    return Number((found as string[])[1]);
  };
  // It can hand over only to a replica that it knows.
  await until(
    async () => {
      const replicas = (await sentinel.call('SENTINEL', 'REPLICAS', NAME)) as unknown[][];
      return replicas.length === 1 && replicas.flat().includes('ok');
    },
    { timeoutMs: 40_000, everyMs: 100, what: 'Sentinel knows the replica' },
  );
  return {
    input: { sentinels: [{ host: HOST, port }], name: NAME },
    sentinel,
    servers,
    masterPort,
    async [Symbol.asyncDispose]() {
      sentinel.disconnect();
      await supervised.close();
      await Promise.all(servers.map((one) => one.close()));
    },
  };
}

/** @throws Error with its last words when it ends instead of answering */
async function startSentinel(
  port: number,
  master: EmbeddedRedis,
): Promise<{ port: number; supervised: Supervised; sentinel: Redis }> {
  const dir = await mkdtemp(join(tmpdir(), 'piecework-sentinel-'));
  const file = join(dir, 'sentinel.conf');
  // Sentinel writes into its file what it learns.
  await writeFile(
    file,
    [
      ...[`port ${port}`, `bind ${HOST}`, `dir ${dir}`],
      `sentinel monitor ${NAME} ${HOST} ${master.port} 1`,
      `sentinel down-after-milliseconds ${NAME} 3000`,
      `sentinel failover-timeout ${NAME} 10000`,
    ].join('\n'),
  );
  const server = await findServer();
  const { file: program, env } = server.command({ dir, port, settings: [] });
  const supervised = await supervise(
    { file: program, args: [file, '--sentinel'], env },
    { logFile: join(dir, 'sentinel.log'), removeFolder: dir },
  );
  const sentinel = new Redis({ host: HOST, port, enableReadyCheck: false });
  sentinel.on('error', () => {});
  let words: string | undefined;
  void supervised.ended.then((said) => {
    words = said;
  });
  // Somebody else may answer at that port.
  const isOurs = async () =>
    (await sentinel.info('server')).includes(`process_id:${supervised.pid}\r\n`);
  await until(async () => words !== undefined || (await isOurs().catch(() => false)), {
    timeoutMs: 40_000,
    what: 'Sentinel answers',
  });
  if (words !== undefined) {
    sentinel.disconnect();
    throw new Error(`Sentinel did not start: ${words}`);
  }
  return { port, supervised, sentinel };
}
