import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  append,
  back,
  failure,
  given,
  Hand,
  LEASE_MS,
  type Scene,
  success,
} from '../support/given.js';
import { keysLeft } from '../support/leaks.js';
import { inspect } from '../support/peek.js';

useTestClock();

/** Runs everything that is unread, `at` a time, by one worker. */
async function runAll(scene: Scene, worker: Hand, at: number) {
  for (;;) {
    const entries = await worker.read(at);
    if (entries.length === 0) return;
    const settled = await worker.trySettle(entries.map((entry) => success(entry)));
    if (settled.verdict !== 'ok') return;
    await inspect(scene);
  }
}

describe('settle', () => {
  it('records successes with their results in the order of their end', async () => {
    const scene = await given.filled({ items: 3 });
    const worker = new Hand(scene);
    const [first, second, third] = await worker.hold(3);
    await worker.settle([success(third!, 'c'), success(first!, 'a')], { keep: 3, running: 1 });
    await worker.settle([success(second!, 'b')]);
    const { results, counts } = await inspect(scene);
    expect(counts).toMatchObject({ succeeded: 3, inFlight: 0, ready: 0 });
    const rows = await scene.request.results('-', 10);
    expect(rows.map(({ position }) => position)).toEqual([
      `${scene.generation}-2`,
      `${scene.generation}-3`,
    ]);
    expect(rows.flatMap(({ records }) => records.map(({ value }) => value))).toEqual([
      'c',
      'a',
      'b',
    ]);
    expect(results).toHaveLength(3);
  });

  it('records results as they are, also none and what looks like a record', async () => {
    const scene = await given.filled({ items: 4, limit: 4 });
    const worker = new Hand(scene);
    const values = ['', '"1 2\\u001e3"', '[1, 2]', '"ß 語"'];
    const entries = await worker.hold(4);
    await worker.settle(entries.map((entry, i) => success(entry, values[i])));
    const [row] = await scene.request.results('-', 10);
    expect(row?.records).toEqual(values.map((value, index) => ({ index, failed: false, value })));
    await inspect(scene);
  });

  it('records once what a worker that lost its lease in between ran twice', async () => {
    const scene = await given.filled({ items: 3, limit: 3 });
    const worker = new Hand(scene);
    const [first, second] = await worker.hold(2);
    const twice = [success(first!, 'a'), success(second!, 'b'), success(first!, 'c')];
    await worker.settle(twice, { grantNo: '' });
    const { counts, results } = await inspect(scene);
    expect(counts).toMatchObject({ succeeded: 2, ready: 1 });
    expect(results.map(({ index, value }) => `${index} ${value}`)).toEqual(['0 a', '1 b']);
  });

  it('keeps no results when they are to be discarded', async () => {
    const scene = await given.filled({ items: 1, results: 'discard' });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    await worker.settle([success(only!)]);
    const { counts, results } = await inspect(scene);
    expect(counts.succeeded).toBe(1);
    expect(results).toEqual([]);
  });

  it('tries again what failed, and keeps error and payload of what failed for good', async () => {
    const scene = await given.filled({ items: 1, attempts: 2 });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    const first = await worker.settle([failure(only!, 5_000)]);
    expect(first.nextDue).toBeGreaterThan(scene.generation + 4_000);
    expect(await inspect(scene)).toMatchObject({ tries: { 0: 1 }, counts: { delayed: 1 } });
    moveClock(5_001);
    expect(await worker.settle([])).toMatchObject({ dueNow: 1 });
    const [again] = await worker.take(1);
    await worker.settle([failure(again!)]);
    const { counts, tries, failed, results } = await inspect(scene);
    expect(counts).toMatchObject({ failed: 1, ready: 0, inFlight: 0, delayed: 0 });
    expect(tries).toEqual({});
    expect(failed).toMatchObject({ 0: expect.stringContaining('"no"'), '0:payload': 'item 0' });
    expect(results).toEqual([{ index: 0, failed: true, value: '2' }]);
    expect(await scene.request.failures([0, 1])).toEqual([expect.stringContaining('"no"'), null]);
  });

  it('costs an entry that was read but not started no delivery', async () => {
    const scene = await given.filled({ items: 1 });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    for (let i = 0; i < 3; i += 1) {
      await worker.settle([back(only!)]);
      expect((await inspect(scene)).pending).toMatchObject([{ owner: '~', deliveries: 0 }]);
      await worker.take(1);
      expect((await inspect(scene)).pending).toMatchObject([{ owner: 'worker', deliveries: 1 }]);
    }
  });

  it('gives up the permits that are not to be kept, and mints tokens for them', async () => {
    const scene = await given.filled({ items: 9, limit: 3 });
    const worker = new Hand(scene);
    const [first, second] = await worker.hold(3);
    expect((await inspect(scene)).out).toBe(0);
    const settled = await worker.settle([success(first!), success(second!)], {
      keep: 1,
      running: 1,
    });
    // Two may come; the first of them lets the other follow.
    expect(settled).toMatchObject({ permits: 1, mint: 1 });
    expect(await worker.settle([], { keep: 0 })).toMatchObject({ permits: 0, mint: 0 });
    expect(await inspect(scene)).toMatchObject({ granted: 0, out: 1 });
  });

  it('keeps no permit of a worker that lost its lease, and still counts its success', async () => {
    const scene = await given.filled({ items: 2 });
    const zombie = new Hand(scene, 'zombie');
    const [first] = await zombie.hold(1);
    moveClock(LEASE_MS);
    await scene.request.tend(scene.generation, '');
    expect(await zombie.settle([success(first!)], { keep: 1 })).toMatchObject({ permits: 0 });
    expect((await inspect(scene)).counts.succeeded).toBe(1);
  });

  it('never raises permits above those that are held', async () => {
    const scene = await given.filled({ items: 5, limit: 3 });
    const worker = new Hand(scene);
    await worker.hold(2);
    const { request, generation } = scene;
    const numbers = { leaseMs: LEASE_MS, keep: 9, running: 9, read: 0 };
    const { settled } = await request.settle(generation, 'worker', numbers, []);
    expect(settled).toMatchObject({ permits: 2 });
  });

  it('reads on in the same round trip', async () => {
    const scene = await given.filled({ items: 3 });
    const worker = new Hand(scene);
    const [first] = await worker.hold(1);
    const { request, generation } = scene;
    const numbers = { op: 2, leaseMs: LEASE_MS, keep: 1, running: 0, read: 1 };
    const both = await request.settle(generation, 'worker', numbers, [success(first!)]);
    expect(both.settled).toMatchObject({ verdict: 'ok', permits: 1 });
    expect(both.entries).toMatchObject([{ index: 1, payload: 'item 1', tries: 0 }]);
  });

  it('completes the request with its last sub-request, and leaves what retention asks for', async () => {
    const scene = await given.sealed({ items: 2, attempts: 1, toleratedFailures: 0 });
    const worker = new Hand(scene);
    const [first, second] = await worker.hold(2);
    await scene.request.renew(scene.generation, 'worker', LEASE_MS, [0, 1]);
    expect(await worker.trySettle([success(first!), failure(second!)])).toEqual({
      verdict: 'complete',
      outcome: 'failed',
    });
    await inspect(scene);
    const { keys } = scene.request;
    const own = (await keysLeft(scene)).filter((key) => key.includes(scene.id));
    expect(own).toEqual([keys.failed, keys.request, keys.results].sort());
    expect((await keysLeft(scene, 'forever')).filter((key) => key.includes(scene.id))).toEqual([]);
    expect(await worker.trySettle([])).toMatchObject({ verdict: 'complete', outcome: 'failed' });
  });

  it('lets so many failures pass as are tolerated', async () => {
    const scene = await given.sealed({ items: 2, toleratedFailures: 1 });
    const worker = new Hand(scene);
    const [first, second] = await worker.hold(2);
    expect(await worker.trySettle([failure(first!), success(second!)])).toMatchObject({
      outcome: 'succeeded',
    });
  });

  it('publishes the outcome after it was written', async () => {
    const scene = await given.sealed({ items: 1 });
    const { channel, request: key } = scene.request.keys;
    const { client } = await scene.connection.openFor(channel, {});
    const heard = new Promise<[string, string | null]>((resolve) => {
      client.on('smessage', async (_channel: string, message: string) => {
        resolve([message, await scene.connection.client.hget(key, 'outcome')]);
      });
    });
    await client.ssubscribe(channel);
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    await worker.trySettle([success(only!)]);
    expect(await heard).toEqual([`${scene.generation} succeeded 1 1 0 0 -`, 'succeeded']);
    client.disconnect();
  });

  it('frees the memory of what is settled as it goes', async () => {
    const scene = await given.filled({ items: 1_000, limit: 50 });
    const worker = new Hand(scene);
    await worker.enter(50);
    await runAll(scene, worker, 50);
    const { work, counts } = await inspect(scene);
    expect(counts.succeeded).toBe(1_000);
    // XTRIM ~ leaves at most a node of 100 entries, and the trim comes every 64 settled.
    expect(work.length).toBeLessThan(250);
  });

  it('keeps what a server that lost writes has yet to deliver', async () => {
    const scene = await given.filled({ items: 1_000, limit: 300 });
    const worker = new Hand(scene);
    const read = await worker.hold(100);
    // These it read as well, but the server knows no more of it.
    const forgotten = Array.from({ length: 200 }, (_, i) => ({
      ...(read[0] as (typeof read)[number]),
      entry: `${scene.generation}-${100 + i}`,
    }));
    await worker.settle([...read, ...forgotten].map((entry) => success(entry)));
    await runAll(scene, worker, 100);
    expect((await inspect(scene)).counts).toMatchObject({ succeeded: 1_000, ready: 0 });
  });

  it('frees it also behind one that is tried again much later', async () => {
    const scene = await given.filled({ items: 5_000, limit: 500, attempts: 2 });
    const worker = new Hand(scene);
    const [straggler, ...others] = await worker.hold(500);
    await worker.settle([failure(straggler!, 3_600_000), ...others.map((entry) => success(entry))]);
    for (let i = 0; i < 9; i += 1) {
      const entries = await worker.read(500);
      await worker.settle(entries.map((entry) => success(entry)));
    }
    expect((await inspect(scene)).fields['pinned']).toBeDefined();
    for (let first = 5_000; first < 9_000; first += 500) {
      await append(scene, 500, first);
      const entries = await worker.read(500);
      await worker.settle(entries.map((entry) => success(entry)));
    }
    const { work, counts } = await inspect(scene);
    expect(counts).toMatchObject({ succeeded: 8_999, delayed: 1 });
    // What was settled before the straggler was far behind is gone as well.
    expect(work.length).toBeLessThan(100);
    moveClock(3_600_001);
    const [again] = await worker.take(1);
    await worker.settle([success(again!)]);
    await append(scene, 200, 9_000);
    await runAll(scene, worker, 100);
    const after = await inspect(scene);
    expect(after.fields['pinned']).toBeUndefined();
    expect(after.work.length).toBeLessThan(300);
  });
});
