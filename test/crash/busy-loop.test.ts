import { describe, expect } from 'vitest';
import { LEASE_MS, leaseOver, startWorker } from '../support/fleet.js';
import { gate, numbers, test } from '../support/flow.js';
import { until } from '../support/until.js';

/*
 * Handlers that hold up the event loop of their worker, which then can renew nothing itself.
 */

/** Where a lease is to be kept: its thread may take long to begin, and both stand still with their machine. */
const KEPT_MS = 6_000;

describe('a handler that holds up the event loop', () => {
  test('for three leases keeps its lease, runs once and counts once', async ({ flow }) => {
    const options = { concurrency: 1, leaseMs: KEPT_MS };
    const busy = await startWorker(flow, { blockMs: 3 * KEPT_MS }, options);
    const { id } = await flow.producer().submit([7], { limit: 2 });
    await until(async () => (await busy.started()).length === 1);
    const others: number[] = [];
    const handler = (n: number) => void others.push(n);
    // It ticks, and would withdraw a lease that ends.
    await flow.worker({ handler, leaseMs: LEASE_MS }).start();
    expect(await flow.complete(id, 60_000)).toMatchObject({ succeeded: 1, failed: 0, total: 1 });
    expect(others).toEqual([]);
    expect(await busy.started()).toEqual([0]);
    expect(await busy.noted('aborted')).toBe(0);
    expect((await flow.results(id)).get(0)).toBe(7);
    busy.kill('SIGTERM');
    expect(await busy.ended).toBe(0);
  });

  test('keeps its lease afterwards', async ({ flow }) => {
    // Two that block, one after the other, and a third that comes after them under the same lease.
    const options = { concurrency: 3, leaseMs: KEPT_MS };
    const busy = await startWorker(flow, { blockMs: 1.2 * KEPT_MS }, options);
    const others: number[] = [];
    const handler = (n: number) => void others.push(n);
    const { id } = await flow.producer().submit(numbers(3), { limit: 3 });
    await until(async () => (await busy.started()).length >= 1);
    await flow.worker({ handler, leaseMs: LEASE_MS }).start();
    expect(await flow.complete(id, 60_000)).toMatchObject({ succeeded: 3, failed: 0, total: 3 });
    expect(others).toEqual([]);
    expect((await busy.started()).sort()).toEqual([0, 1, 2]);
  });

  test('for ever loses it, and others take over', async ({ flow }) => {
    // Time enough for a thread that begins late, or stands still for a while, to renew once.
    const maxBlockMs = 8 * LEASE_MS;
    const stuck = await startWorker(flow, { told: 'block' }, { concurrency: 1, maxBlockMs });
    const producer = flow.producer();
    const { id } = await producer.submit([7], { limit: 1 });
    // Its ticks would withdraw permits that the thread, on a busy machine, begins to renew too late.
    await producer.close();
    await until(async () => (await stuck.started()).length === 1);
    const lease = async () =>
      Number((await flow.request(id).inspect())?.state[`lease:${stuck.id}`] ?? 0);
    // The first one ends a lease after that at most, however late this test reads it.
    const began = await stuck.began();
    await until(async () => (await lease()) > began + 2 * LEASE_MS, {
      what: 'it was believed while it might have been only slow',
      timeoutMs: 20_000,
    });
    const handler = (n: number) => n * 2;
    await flow.worker({ handler, leaseMs: LEASE_MS }).start();
    await leaseOver(flow, id, stuck.id);
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0, total: 1 });
    expect((await flow.results(id)).get(0)).toBe(14);
  });

  test('beyond the time of its attempt loses it', async ({ flow }) => {
    const stuck = await startWorker(flow, { told: 'block' }, { concurrency: 1 });
    const options = { limit: 1, attemptTimeoutMs: LEASE_MS };
    const { id } = await flow.producer().submit([7], options);
    await until(async () => (await stuck.started()).length === 1);
    await leaseOver(flow, id, stuck.id);
    await flow.worker({ handler: (n: number) => n }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0, total: 1 });
  });

  test('without the thread loses it after a lease', async ({ flow }) => {
    const lonely = { concurrency: 1, maxBlockMs: 0 };
    const stuck = await startWorker(flow, { told: 'block' }, lonely);
    const { id } = await flow.producer().submit([7], { limit: 1 });
    await until(async () => (await stuck.started()).length === 1);
    await leaseOver(flow, id, stuck.id);
    expect(await flow.request(id).inspect()).toMatchObject({ inFlight: 0, ready: 1 });
    await flow.worker({ handler: (n: number) => n }).start();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, total: 1 });
  });
});

describe('a worker that comes back to its event loop after it lost its lease', () => {
  const lost = { concurrency: 1, maxBlockMs: LEASE_MS };

  test('reports no failure', async ({ flow }) => {
    const late = await startWorker(flow, { told: 'block', fail: true }, lost);
    const { id } = await flow.producer().submit([7], { limit: 1 });
    await until(async () => (await late.started()).length === 1);
    await leaseOver(flow, id, late.id);
    const hold = gate();
    const worker = flow.worker({ handler: () => hold.opened });
    await worker.start();
    await until(() => worker.running === 1);
    late.kill('SIGTERM');
    await late.tell();
    expect(await late.ended).toBe(0);
    expect(await flow.request(id).state()).toMatchObject({ succeeded: 0, failed: 0 });
    hold.open();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0, total: 1 });
  });

  test('may still succeed, which counts once', async ({ flow }) => {
    const late = await startWorker(flow, { told: 'block' }, lost);
    const { id } = await flow.producer().submit([7], { limit: 1 });
    await until(async () => (await late.started()).length === 1);
    await leaseOver(flow, id, late.id);
    const hold = gate();
    const worker = flow.worker({ handler: () => hold.opened });
    await worker.start();
    await until(() => worker.running === 1);
    await late.tell();
    expect(await flow.complete(id)).toMatchObject({ succeeded: 1, failed: 0, total: 1 });
    expect((await flow.results(id)).get(0)).toBe(7);
    hold.open();
    await until(() => worker.running === 0);
    expect(await flow.request(id).state()).toMatchObject({ succeeded: 1, failed: 0 });
  });
});
