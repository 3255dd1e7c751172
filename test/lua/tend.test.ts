import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { create, failure, given, Hand, LEASE_MS, success, tickOnce } from '../support/given.js';
import { keysOf } from '../support/leaks.js';
import { inspect, inspectQueue } from '../support/peek.js';

useTestClock();

describe('tend', () => {
  it('withdraws permits whose lease ended and takes back what was held under them', async () => {
    const scene = await given.filled({ items: 5, limit: 4 });
    await new Hand(scene, 'dead').hold(3);
    moveClock(20_000);
    await new Hand(scene, 'alive').hold(1);
    moveClock(LEASE_MS - 20_000);
    await scene.request.tend(scene.generation, '');
    const { permits, counts, due, pending } = await inspect(scene);
    expect(permits).toEqual({ alive: 1 });
    expect(counts).toMatchObject({ ready: 4, inFlight: 1 });
    expect(due).toEqual({ 0: 0, 1: 0, 2: 0 });
    // That it was delivered is remembered: it may be what killed its worker.
    expect(pending.map(({ deliveries }) => deliveries)).toEqual([1, 1, 1, 1]);
  });

  it('keeps its hands off what a worker with permits holds', async () => {
    const scene = await given.filled({ items: 2 });
    await new Hand(scene).hold(2);
    moveClock(LEASE_MS - 5_000);
    await scene.request.tend(scene.generation, '');
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 2, ready: 0 });
  });

  it('tends an open request that has nothing to do yet again within the audit period', async () => {
    // Trace: idle at the tend; items come; their worker dies. The producer lease may be a day.
    const scene = await given.created();
    const tended = await scene.request.tend(scene.generation, '');
    const { now } = await inspect(scene);
    expect((tended as { next: number }).next).toBeGreaterThan(now);
    expect((tended as { next: number }).next).toBeLessThanOrEqual(now + 15_000);
  });

  it('takes back very many entries in several tends', async () => {
    const scene = await given.filled({ items: 250, limit: 250 });
    await new Hand(scene).hold(250);
    moveClock(LEASE_MS);
    const ready: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      const tended = await scene.request.tend(scene.generation, '');
      const { counts, now } = await inspect(scene);
      ready.push(counts.ready);
      if (i < 2) expect((tended as { next: number }).next).toBeLessThanOrEqual(now + 2);
    }
    expect(ready).toEqual([100, 200, 250]);
  });

  it('mints what is missing when a delayed retry has become due', async () => {
    const scene = await given.sealed({ items: 1, attempts: 2, limit: 1 });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    const { nextDue, mint } = await worker.settle([failure(only!, 60_000)], { keep: 0 });
    expect(mint).toBe(0);
    expect(await scene.request.tend(scene.generation, '')).toMatchObject({
      mint: 0,
      next: nextDue,
    });
    moveClock(60_001);
    expect(await scene.request.tend(scene.generation, '')).toMatchObject({ mint: 1 });
  });

  it('seals or cancels a request whose producer left, as the option says', async () => {
    const sealed = await given.filled({ producerLeaseMs: 9_000, onProducerLost: 'seal' });
    const cancelled = await given.filled({ producerLeaseMs: 9_000, onProducerLost: 'cancel' });
    const empty = await given.created({ producerLeaseMs: 9_000, onProducerLost: 'seal' });
    const { now } = await inspect(sealed);
    const early = await sealed.request.tend(sealed.generation, '');
    expect((early as { next: number }).next).toBeLessThanOrEqual(now + 9_001);
    moveClock(9_000);
    await sealed.request.tend(sealed.generation, '');
    expect(await inspect(sealed)).toMatchObject({
      status: 'sealed',
      fields: { producerLost: '1' },
    });
    expect((await inspect(sealed)).fields['endReason']).toBeUndefined();
    expect(await cancelled.request.tend(cancelled.generation, '')).toEqual({
      verdict: 'complete',
      outcome: 'cancelled',
    });
    expect((await inspect(cancelled)).fields).toMatchObject({
      producerLost: '1',
      endReason: 'producer-lost',
    });
    expect(await empty.request.tend(empty.generation, '')).toEqual({
      verdict: 'complete',
      outcome: 'succeeded',
    });
  });

  it('turns the epoch only when the one before has passed', async () => {
    const scene = await given.sealed({ items: 9, limit: 2 });
    const { request, generation } = scene;
    expect(await request.tend(generation, '')).toMatchObject({ before: '1', epoch: 2, mint: 0 });
    expect(await request.tend(generation, '')).toMatchObject({ before: '1', epoch: 2, mint: 0 });
    expect(await request.tend(generation, '7')).toMatchObject({ before: '1', epoch: 2, mint: 0 });
    expect(await request.tend(generation, '1')).toMatchObject({ before: '', epoch: 2, mint: 1 });
    expect(await request.tend(generation, '1')).toMatchObject({ before: '2', epoch: 3, mint: 0 });
  });

  it('schedules the next tend for the audit or the end of a lease, whichever is first, or not at all', async () => {
    const scene = await given.sealed({ items: 3, limit: 1 });
    const { request, generation } = scene;
    expect(await request.tend(generation, '')).toMatchObject({ next: 0, before: '1' });
    const worker = new Hand(scene);
    await worker.hold(1);
    const { now } = await inspect(scene);
    const { next } = (await request.tend(generation, '')) as { next: number };
    expect(next).toBeGreaterThanOrEqual(Math.floor(now) + 15_000);
    moveClock(20_000);
    const near = (await request.tend(generation, '')) as { next: number };
    expect(near.next).toBeLessThan(now + LEASE_MS + 1_000);
  });

  it('forgets the numbers of enters of workers that are long gone', async () => {
    const scene = await given.filled({ items: 2 });
    const worker = new Hand(scene);
    const [first] = await worker.hold(1);
    await worker.settle([success(first!)], { keep: 0 });
    const ops = async () =>
      Object.entries((await inspect(scene)).fields).filter(([field]) => field.startsWith('op:'));
    expect(await ops()).toEqual([['op:worker', '2']]);
    await scene.request.tend(scene.generation, '');
    expect(await ops()).toEqual([['op:worker', '2!']]);
    await scene.request.tend(scene.generation, '');
    expect(await ops()).toEqual([]);
    await scene.request.tend(scene.generation, '');
    expect((await inspect(scene)).consumers).toEqual([]);
  });

  it('finishes on the queue side what ended and was not taken off', async () => {
    const scene = await given.sealed({ items: 0 });
    moveClock(20_100);
    await tickOnce(scene);
    const { open, history } = await inspectQueue(scene);
    expect(open).toEqual({});
    expect(Object.keys(history)).toEqual([scene.id]);
  });

  it('gives up an intent that became nothing, for good', async () => {
    const scene = await given.opened();
    expect(await scene.request.tend(scene.generation, '')).toEqual({ verdict: 'gone' });
    expect(await create(scene)).toMatchObject({ verdict: 'void' });
    const { client } = scene.connection;
    const [tombstone, ...others] = await keysOf(client, scene.id);
    expect(others).toEqual([]);
    expect(await client.pttl(tombstone!)).toBeGreaterThan(120_000);
  });

  it('does not change a retained generation when the next one was given up', async () => {
    const old = await given.sealed({ items: 0 });
    await old.queue.finish(old.id, old.generation, 'succeeded');
    const next = await given.opened({ id: old.id, queue: old.queue.keys.queue });
    expect(await next.request.tend(next.generation, '')).toEqual({ verdict: 'gone' });
    expect(await inspect(next)).toMatchObject({
      status: 'complete',
      generation: old.generation,
      outcome: 'succeeded',
    });
    await next.request.drop();
    expect(await create(next)).toMatchObject({ verdict: 'void' });
  });

  it('does not change a newer generation', async () => {
    const scene = await given.filled();
    const before = await inspect(scene);
    expect(await scene.request.tend(scene.generation - 1, '')).toEqual({ verdict: 'gone' });
    expect({ ...(await inspect(scene)), now: 0 }).toEqual({ ...before, now: 0 });
  });
});
