/**
 * Processes that begin while the cluster is down: a master is gone, nobody takes its hash slots over.
 * @module-tag processes
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedCluster, startCluster } from '@piecework/embedded';
import { Producer } from '@piecework/producer';
import { Worker } from '@piecework/worker';
import { Redis } from 'ioredis';
import { Admin, Notifier, Piecework } from 'piecework';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Log, numbers } from '../support/flow.js';
import { freshName } from '../support/given.js';
import { until } from '../support/until.js';

const folder = mkdtempSync(join(tmpdir(), 'piecework-down-'));
const LOST = 2;
let cluster: EmbeddedCluster;
let redis: { nodes: { host: string; port: number }[] };

beforeAll(async () => {
  cluster = await startCluster({
    password: '',
    replicasPerMaster: 0,
    dir: folder,
    persistence: 'aof',
  });
  redis = { nodes: cluster.nodes.map(({ host, port }) => ({ host, port })) };
  await cluster.kill(LOST);
  const nodes = redis.nodes.filter((_, i) => i !== LOST).map((at) => new Redis(at));
  for (const node of nodes) {
    await until(async () => String(await node.cluster('INFO')).includes('cluster_state:fail'), {
      timeoutMs: 30_000,
    });
    node.disconnect();
  }
});

afterAll(async () => {
  await cluster?.close();
  rmSync(folder, { recursive: true, force: true });
});

const DOWN = {
  name: 'ServerError',
  code: 'CLUSTER_DOWN',
  retryable: true,
  message: expect.stringMatching(/the cluster is down: 127\.0\.0\.1:\d+ finds 109\d\d of 16384/),
};

test('they get the reason after their longest wait, and begin when it is up', async () => {
  const queue = freshName('down');
  const log = new Log();
  const newWorker = () =>
    new Worker({ redis, queue, logger: log as never, handler: (n: number) => n });
  const refused = newWorker();
  const worker = newWorker();
  const producer = new Producer({ redis, queue });
  const notifier = new Notifier({ redis, queue });
  const admin = new Admin({ redis, queue });
  const ids = numbers(12).map((n) => `${queue}.${n}`);
  try {
    // An attempt that a busy machine cuts off would end otherwise.
    const briefly = { unavailableMs: 4_000 };
    await Promise.all([
      expect(refused.start(briefly)).rejects.toMatchObject(DOWN),
      expect(producer.submit([1], briefly)).rejects.toMatchObject(DOWN),
      expect(producer.submit([1], { ...briefly, dedupe: { key: 'k' } })).rejects.toMatchObject(
        DOWN,
      ),
    ]);
    expect(refused.health()).toMatchObject({ state: 'closed', ready: false });

    // These wait for as long as they may by default.
    const started = worker.start();
    const completions = ids.map((id) => notifier.completion(id, { timeoutMs: 45_000 }));
    for (const one of completions) one.catch(() => {});
    const submitted = Promise.all(ids.map((id) => producer.submit(numbers(5), { id })));
    submitted.catch(() => {});
    const resumed = admin.resumeQueue();
    for (const one of [started, resumed]) one.catch(() => {});
    await using impatient = new Piecework({ redis, queue });
    await expect(impatient.check()).rejects.toMatchObject(DOWN);
    await cluster.startAgain(LOST);
    await Promise.all([started, submitted, resumed]);
    await until(() => worker.health().ready);
    for (const id of ids)
      expect(await notifier.completion(id)).toMatchObject({ counts: { succeeded: 5 } });
    expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  } finally {
    await Promise.all([worker.close(), producer.close(), notifier.close(), admin.close()]);
  }
});
