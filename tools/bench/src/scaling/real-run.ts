import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type EmbeddedCluster, startCluster, startRedis } from '@piecework/embedded';
import { Connection, queueKeys, requestKeys } from '@piecework/protocol';
import { Redis } from 'ioredis';
import { Piecework } from 'piecework';
import { buildScripts } from '../../../../scripts/lua-source.mjs';
import { difference, type RedisFigures, redisFigures } from '../redis-figures.js';
import { type Counts, sum } from './call-counter.js';
import type { WorkerCount, WorkerOrder } from './real-worker.js';

const PROGRAM = fileURLToPath(new URL('./real-worker.js', import.meta.url));
const QUEUE = 'scaling';

/** A run of real workers on real servers. */
export interface RealSetting {
  readonly masters: 1 | 3;
  readonly workers: number;
  readonly concurrency: number;
  readonly quantumMs: number;
  readonly handlerMs: number;
  readonly requests: number;
  /** Of each request. */
  readonly limit: number;
  readonly size: number;
}

export interface RealRun {
  readonly setting: RealSetting;
  readonly settled: number;
  readonly elapsedMs: number;
  /** CPU time of each master. */
  readonly masterMicros: readonly number[];
  /** CPU time of all workers. */
  readonly clientMicros: number;
  /** What all workers sent. */
  readonly counts: Counts;
  /** Master of each request, and that of the queue. */
  readonly placement: readonly number[];
  readonly queueMaster: number;
}

const load = (probe: Redis, lua: string) => probe.script('LOAD', lua);

/** Starts servers and workers, submits everything, and counts until the last one is settled. */
export async function realRun(setting: RealSetting): Promise<RealRun> {
  await using servers = await startServers(setting.masters);
  const { nodes } = servers;
  const urls = nodes.map(({ host, port }) => `redis://${host}:${port}`);
  // One URL is a server, several are the nodes of a cluster.
  const redis = urls.join(',');
  const probes = nodes.map(({ host, port }) => new Redis({ host, port }));
  const { concurrency, quantumMs, handlerMs } = setting;
  const order = { redis, queue: QUEUE, concurrency, quantumMs, handlerMs };
  const workers: ChildProcess[] = [];
  const pw = new Piecework({ redis, queue: QUEUE });
  try {
    for (let seed = 1; seed <= setting.workers; seed += 1) {
      workers.push(await startWorker({ ...order, seed }));
    }
    // A script that a master does not know is counted twice by who sends it first.
    const scripts = Object.values(buildScripts());
    await Promise.all(probes.flatMap((probe) => scripts.map(({ lua }) => load(probe, lua))));
    // Not counted: compiles the workers' code.
    await workOff(pw, { ...setting, size: Math.ceil(setting.size / 4) }, 'warm-up');
    await Promise.all(workers.map((worker) => ask(worker, 'start')));
    const before = await Promise.all(probes.map(redisFigures));
    const startMs = performance.now();
    const ids = await workOff(pw, setting, 'run');
    const elapsedMs = performance.now() - startMs;
    const after = await Promise.all(probes.map(redisFigures));
    const counted = await Promise.all(workers.map((worker) => ask<WorkerCount>(worker, 'stop')));
    return {
      setting,
      settled: setting.requests * setting.size,
      elapsedMs,
      masterMicros: after.map(
        (figures, i) => difference(before[i] as RedisFigures, figures).cpuMicros,
      ),
      clientMicros: counted.reduce((micros, { cpuMicros }) => micros + cpuMicros, 0),
      counts: sum(counted.map(({ counts }) => counts)),
      ...(await places(redis, nodes, ids)),
    };
  } finally {
    for (const worker of workers) worker.kill();
    await pw.close();
    for (const probe of probes) probe.disconnect();
  }
}

async function startServers(
  masters: 1 | 3,
): Promise<AsyncDisposable & Pick<EmbeddedCluster, 'nodes'>> {
  if (masters === 3) return startCluster({ password: '', masters, replicasPerMaster: 0 });
  const server = await startRedis({ password: '' });
  return { nodes: [server], [Symbol.asyncDispose]: () => server.close() };
}

async function startWorker(order: WorkerOrder): Promise<ChildProcess> {
  const worker = fork(PROGRAM, [JSON.stringify(order)]);
  const [message] = await Promise.race([once(worker, 'message'), once(worker, 'exit')]);
  if (message !== 'ready') throw new Error(`a worker did not start: ${String(message)}`);
  return worker;
}

async function ask<T>(worker: ChildProcess, message: 'start' | 'stop'): Promise<T> {
  worker.send(message);
  const [answer] = await once(worker, 'message');
  return answer as T;
}

async function workOff(pw: Piecework, setting: RealSetting, name: string): Promise<string[]> {
  const { requests, limit, size } = setting;
  const items = Array.from({ length: size }, (_, n) => n);
  const ids = Array.from({ length: requests }, (_, i) => `${name}-${i}`);
  await Promise.all(ids.map((id) => pw.submit(items, { id, limit })));
  for (const id of ids) {
    const { counts } = await pw.request(id).completion();
    if (counts.succeeded !== size) throw new Error(`${id}: ${JSON.stringify(counts)}`);
  }
  return ids;
}

/** Where the hash slots are. */
async function places(
  redis: WorkerOrder['redis'],
  nodes: readonly { host: string; port: number }[],
  ids: readonly string[],
): Promise<{ placement: number[]; queueMaster: number }> {
  const connection = Connection.open(redis);
  const masterOf = async (key: string) => {
    const address = await connection.addressOf(key);
    return Math.max(
      0,
      nodes.findIndex(({ host, port }) => `${host}:${port}` === address),
    );
  };
  try {
    await connection.check();
    return {
      placement: await Promise.all(ids.map((id) => masterOf(requestKeys(id).request))),
      queueMaster: await masterOf(queueKeys(QUEUE).open),
    };
  } finally {
    await connection.close();
  }
}
