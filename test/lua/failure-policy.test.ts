import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { back, failure, given, Hand, LEASE_MS, success, tickOnce } from '../support/given.js';
import { inspect } from '../support/peek.js';

useTestClock();

const CANCEL = { onExceeded: 'cancel' } as const;

describe('the outcome', () => {
  const cases: [tolerated: number | string, failed: number, outcome: string][] = [
    [0, 0, 'succeeded'],
    [0, 1, 'failed'],
    [2, 2, 'succeeded'],
    [2, 3, 'failed'],
    ['30%', 3, 'succeeded'],
    ['29.9%', 3, 'failed'],
    ['0%', 1, 'failed'],
    ['100%', 10, 'succeeded'],
  ];
  for (const [toleratedFailures, failed, outcome] of cases) {
    it(`is '${outcome}' when ${failed} of 10 failed and ${toleratedFailures} are tolerated`, async () => {
      const scene = await given.sealed({ items: 10, limit: 10, toleratedFailures });
      const worker = new Hand(scene);
      const entries = await worker.hold(10);
      const ended = entries.map((entry, i) => (i < failed ? failure(entry) : success(entry)));
      expect(await worker.trySettle(ended)).toEqual({ verdict: 'complete', outcome });
    });
  }
});

describe('a failure that is one too many', () => {
  it('ends the request in the call that finds it', async () => {
    const scene = await given.sealed({ items: 9, limit: 4, toleratedFailures: 1, ...CANCEL });
    const worker = new Hand(scene);
    const [a, b, c, d] = await worker.hold(4);
    await worker.settle([failure(a!), back(d!)], { keep: 4, running: 2 });
    expect(await inspect(scene)).toMatchObject({ status: 'sealed', counts: { failed: 1 } });
    expect(await worker.settle([failure(b!)], { keep: 3, running: 1 })).toMatchObject({
      permits: 1,
      mint: 0,
    });
    expect(await inspect(scene)).toMatchObject({
      status: 'cancelling',
      fields: { endReason: 'failures' },
      counts: { failed: 2, cancelled: 6, inFlight: 1, ready: 0, delayed: 0 },
    });
    expect(await worker.trySettle([success(c!)])).toEqual({
      verdict: 'complete',
      outcome: 'failed',
    });
    expect(await scene.request.state()).toMatchObject({ endReason: 'failures', succeeded: 1 });
  });

  it('ends nothing when that is not asked for', async () => {
    const scene = await given.sealed({ items: 3 });
    const worker = new Hand(scene);
    const [a] = await worker.hold(2);
    await worker.settle([failure(a!)], { running: 1 });
    expect(await inspect(scene)).toMatchObject({ status: 'sealed', counts: { cancelled: 0 } });
  });

  it('of a share is one only when all are there', async () => {
    const options = { items: 4, limit: 4, toleratedFailures: '25%', ...CANCEL };
    const scene = await given.filled(options);
    const worker = new Hand(scene);
    const [a, b] = await worker.hold(2);
    await worker.settle([failure(a!), failure(b!)], { keep: 0 });
    expect(await inspect(scene)).toMatchObject({ status: 'open', counts: { failed: 2 } });
    await scene.request.seal(scene.generation, 'maker', 4);
    moveClock(21_000);
    await tickOnce(scene);
    expect(await scene.request.state()).toMatchObject({
      ...{ status: 'complete', outcome: 'failed', endReason: 'failures' },
      ...{ failed: 2, cancelled: 2 },
    });
  });

  it('leaves the rest to the next tends when very many wait', async () => {
    const scene = await given.sealed({ items: 601, limit: 601, ...CANCEL });
    const worker = new Hand(scene);
    const [first, ...rest] = await worker.hold(601);
    await worker.settle(rest.map(back), { keep: 1, running: 1 });
    const settled = await worker.settle([failure(first!)], { keep: 0 });
    expect((await inspect(scene)).counts).toMatchObject({ cancelled: 500, ready: 100 });
    expect(settled.nextDue).toBeGreaterThan(0);
    await scene.queue.scheduleTend(scene.id, scene.generation, settled.nextDue);
    await tickOnce(scene);
    expect(await scene.request.state()).toMatchObject({ outcome: 'failed', cancelled: 600 });
  });

  it('may be a crash', async () => {
    const scene = await given.sealed({ items: 5, limit: 1, maxCrashes: 1, ...CANCEL });
    await new Hand(scene).hold(1);
    moveClock(LEASE_MS + 1);
    expect(await scene.request.tend(scene.generation, '')).toEqual({
      verdict: 'complete',
      outcome: 'failed',
      crashed: { count: 1, indexes: [0] },
    });
    expect(await scene.request.state()).toMatchObject({ failed: 1, cancelled: 4 });
  });
});
