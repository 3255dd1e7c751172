/**
 * A master that Sentinel hands over, and one that dies, while work runs.
 * @module-tag processes
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Notifier } from '@piecework/notifier';
import { Redis } from 'ioredis';
import { Admin } from 'piecework';
import { expect } from 'vitest';
import { cli } from '../support/cli.js';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { startWatched, type Watched } from '../support/sentinel.js';
import { until } from '../support/until.js';

const REQUESTS = 8;
const ITEMS = 60;
/** So many are run while the master changes; those behind them wait for that. */
const MEANWHILE = 360;

/** Workers, and requests that are on both servers, under way. */
async function underWay(flow: Flow, watched: Watched) {
  const redis = watched.input;
  const runs = new Map<string, number>();
  const changed = gate();
  for (let i = 0; i < 2; i += 1) {
    const worker = flow.worker({
      redis,
      concurrency: 10,
      leaseMs: 4_000,
      handler: async (n: number, { requestId, index }) => {
        const key = `${requestId} ${index}`;
        runs.set(key, (runs.get(key) ?? 0) + 1);
        // Slow, until what is to happen meanwhile has happened.
        const waiting = [changed.opened, ...(runs.size > MEANWHILE ? [] : [sleep(600)])];
        await Promise.race(waiting);
        return n * 2;
      },
    });
    await worker.start();
  }
  const producer = flow.producer({ redis });
  const notifier = new Notifier({ redis, queue: flow.queue });
  flow.after(() => notifier.close());
  const ids = numbers(REQUESTS).map((n) => flow.id(`request-${n}`));
  for (const id of ids)
    await producer.submit(numbers(ITEMS), { id, limit: 4, durability: 'replica' });
  const completions = Promise.all(ids.map((id) => notifier.completion(id, { timeoutMs: 200_000 })));
  completions.catch(() => {});
  await until(() => runs.size > 20, { what: 'work is under way' });
  return { ids, runs, changed, completions, notifier };
}

/** Nothing would be shown by work that was over before. */
function stillMuchToDo({ runs, changed }: Awaited<ReturnType<typeof underWay>>): void {
  expect(runs.size).toBeLessThan(REQUESTS * ITEMS);
  changed.open();
}

async function allDone(flow: Flow, work: Awaited<ReturnType<typeof underWay>>): Promise<void> {
  const outcomes = await work.completions;
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      status: 'succeeded',
      counts: { total: ITEMS, succeeded: ITEMS },
    });
  for (const id of work.ids) {
    const values = new Map<number, unknown>();
    for await (const result of work.notifier.results(id)) {
      expect(values.has(result.index), `${id} ${result.index} came twice`).toBe(false);
      values.set(result.index, result.status === 'succeeded' && result.value);
    }
    expect([...values].sort(([a], [b]) => a - b)).toEqual(numbers(ITEMS).map((n) => [n, 2 * n]));
  }
  // What went wrong meanwhile was told; none of it is left.
  flow.log.lines.length = 0;
}

/** Servers of the test's own with work under way, and the port of their first master. */
async function watchedAtWork(flow: Flow) {
  const watched = await startWatched();
  flow.after(() => watched[Symbol.asyncDispose]());
  const work = await underWay(flow, watched);
  return { watched, work, first: await watched.masterPort() };
}

test('a master that is handed over while work runs: every request completes', {
  timeout: 300_000,
}, async ({ flow }) => {
  const { watched, work, first } = await watchedAtWork(flow);
  await handOver(watched, first);
  const second = await watched.masterPort();
  expect(second).not.toBe(first);
  stillMuchToDo(work);
  await allDone(flow, work);
  await using admin = new Admin({ redis: watched.input, queue: flow.queue });
  const findings = await admin.doctor();
  expect(findings.filter(({ level }) => level === 'error')).toEqual([]);
  expect(findings.map(({ what }) => what).join('\n')).toContain(`127.0.0.1:${second}`);
  for (const id of work.ids) await admin.drop(id);
  await onCommandLine(flow, watched);
});

test('a master that dies while work runs: every request completes on the other', {
  timeout: 300_000,
}, async ({ flow }) => {
  const { watched, work } = await watchedAtWork(flow);
  await watched.killMaster();
  stillMuchToDo(work);
  await allDone(flow, work);
  await using admin = new Admin({ redis: watched.input, queue: flow.queue });
  for (const id of work.ids) await admin.drop(id);
});

/** A run of the command line, worker processes and all, that is told of the Sentinels alone. Its queue is its own. */
async function onCommandLine({ queue }: Flow, { input }: Watched): Promise<void> {
  const hosts = input.sentinels.map(({ host, port }) => `${host}:${port}`);
  const redis = [
    '--redis',
    `redis-sentinel://${hosts.join()}/${input.name}`,
    '--queue',
    `${queue}-run`,
  ];
  const request = ['--input', '-', '--exec', 'tr a-z A-Z', '--out', '-', '--processes', '2'];
  const { code, stdout, stderr } = await cli(['run', ...redis, ...request], { input: 'a\nb\n' });
  expect(code, stderr).toBe(0);
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { index: 0, status: 'succeeded' },
    { index: 1, status: 'succeeded' },
  ]);
}

/** Has Sentinel make the replica the master, and waits until the old one follows it. */
async function handOver(watched: Watched, from: number): Promise<void> {
  await watched.handOver();
  const old = new Redis({ host: '127.0.0.1', port: from });
  await until(async () => (await old.info('replication')).includes('role:slave'), {
    timeoutMs: 60_000,
  });
  old.disconnect();
}
