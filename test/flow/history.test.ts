/**
 * The history of a queue, and what the registry contains of its workers.
 */
import { Admin, type HistoryPoint, InvalidOptionError } from 'piecework';
import { describe, expect } from 'vitest';
import { type Flow, gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

const adminOf = (flow: Flow, shards = 1) =>
  new Admin({ redis: flow.connection, queue: flow.queue, shards });

const sumOf = (history: readonly HistoryPoint[]) => {
  const sum = (of: (point: HistoryPoint) => number) => history.reduce((n, one) => n + of(one), 0);
  return {
    succeeded: sum((one) => one.succeeded),
    failed: sum((one) => one.failed),
    cancelled: sum((one) => one.cancelled),
    retried: sum((one) => one.retried),
  };
};

/** Fails 2 once and 3 always. */
const mixed = (n: number, { attempt }: { attempt: number }) => {
  if (n === 3 || (n === 2 && attempt === 1)) throw new Error('no');
};

describe('the history of a queue', () => {
  test('has what its workers settled, by outcome, also of one that has left', async ({ flow }) => {
    const admin = adminOf(flow);
    expect(sumOf(await admin.history())).toEqual(sumOf([]));
    const worker = flow.worker({ concurrency: 3, handler: mixed });
    await worker.start();
    await flow.producer().submit(numbers(20), { attempts: 2, id: flow.id('a') });
    await flow.complete(flow.id('a'));
    await worker.close();
    const history = await admin.history();
    expect(sumOf(history)).toEqual({ succeeded: 19, failed: 1, cancelled: 0, retried: 2 });
    expect(history).toHaveLength(361);
    for (const [i, { at }] of history.entries()) expect(at).toBe(history[0]!.at + i * 10_000);
    const { slots, workers, inFlight } = history.find(({ succeeded }) => succeeded > 0)!;
    expect({ slots, workers, inFlight }).toEqual({ slots: 3, workers: 1, inFlight: 0 });
  });

  test('has what is cancelled while a worker has it, and how many handlers run', async ({
    flow,
  }) => {
    const over = gate();
    flow.after(() => over.open());
    const admin = adminOf(flow);
    const worker = flow.worker({
      concurrency: 3,
      handler: (_: number, { signal }) =>
        Promise.race([over.opened, new Promise((_, no) => signal.addEventListener('abort', no))]),
    });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(3));
    await until(async () => (await admin.history({ sinceMs: 0 }))[0]?.inFlight === 3);
    await admin.cancel(id);
    await flow.complete(id);
    await worker.close();
    expect(sumOf(await admin.history()).cancelled).toBe(3);
  });

  test('adds up the shards of a queue, each of which has the same workers', async ({ flow }) => {
    const admin = adminOf(flow, 3);
    const producer = flow.producer({ shards: 3 });
    const workers = [1, 2].map(() => flow.worker({ shards: 3, concurrency: 4, handler: mixed }));
    for (const worker of workers) await worker.start();
    const ids = numbers(6).map((n) => flow.id(`s${n}`));
    for (const id of ids) await producer.submit(numbers(4, 10), { id });
    for (const id of ids) await flow.complete(id);
    const [point] = (await admin.history({ sinceMs: 0 })) as [HistoryPoint];
    expect(point).toMatchObject({ slots: 8, workers: 2 });
    for (const worker of workers) await worker.close();
    expect(sumOf(await admin.history()).succeeded).toBe(24);
  });

  test('counts nothing twice when the server has forgotten its worker', async ({ flow }) => {
    const admin = adminOf(flow);
    const worker = flow.worker({ handler: mixed });
    await worker.start();
    const { id } = await flow.producer().submit(numbers(20, 10));
    await flow.complete(id);
    await until(async () => sumOf(await admin.history()).succeeded === 20);
    const { keys } = flow.queueCommands;
    const { client } = flow.connection;
    await client.hdel(keys.workerInfo, worker.id);
    await until(() => client.hget(keys.workerInfo, worker.id));
    await worker.close();
    expect(sumOf(await admin.history()).succeeded).toBe(20);
  });

  test('goes back an hour at most', async ({ flow }) => {
    const admin = adminOf(flow);
    expect(await admin.history({ sinceMs: 60_000 })).toHaveLength(7);
    await expect(async () => admin.history({ sinceMs: 3_600_001 })).rejects.toThrow(
      InvalidOptionError,
    );
  });
});

describe('the registry of the workers', () => {
  test('contains memory, the delay of the event loop, and what health names as wrong', async ({
    flow,
  }) => {
    const admin = adminOf(flow);
    const worker = flow.worker({ handler: () => {} });
    await worker.start();
    const [started] = await admin.workers();
    expect(started).toMatchObject({ id: worker.id, why: [], rssBytes: expect.any(Number) });
    expect(started).not.toHaveProperty('figures');
    expect(started?.rssBytes).toBeGreaterThan(10_000_000);
    await until(async () => {
      // Blocked most of the time, so that nearly every check comes late.
      for (const end = performance.now() + 60; performance.now() < end; );
      return ((await admin.workers())[0]?.eventLoopDelayMs ?? 0) > 20;
    });
  });

  test('says that a worker closes', async ({ flow }) => {
    const admin = adminOf(flow);
    const over = gate();
    flow.after(() => over.open());
    const worker = flow.worker({ handler: () => over.opened });
    await worker.start();
    const { id } = await flow.producer().submit([1]);
    await until(() => worker.running === 1);
    const closed = worker.close({ timeoutMs: 60_000 });
    await until(async () => (await admin.workers())[0]?.why.length);
    const [said] = await admin.workers();
    expect(said?.why).toEqual(['the worker is closing: running sub-requests end']);
    over.open();
    await closed;
    await flow.complete(id);
  });

  test('has workers of an earlier version, which report neither', async ({ flow }) => {
    const said = { host: 'h', pid: 1, concurrency: 1, running: 0, tasks: '*', startedAt: 1 };
    await flow.queueCommands.tick('old', JSON.stringify(said));
    const [old] = await adminOf(flow).workers();
    expect(old).toMatchObject({ id: 'old', why: [] });
    expect(old).not.toHaveProperty('rssBytes');
    expect(sumOf(await adminOf(flow).history())).toEqual(sumOf([]));
    await flow.queueCommands.deregister('old');
  });
});
