import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { append, create, given, Hand, popAll, success, tickOnce } from '../support/given.js';
import { inspect } from '../support/peek.js';

useTestClock();

describe('a delayed request', () => {
  it('mints nothing until its time has come, and is tended then', async () => {
    const scene = await given.sealed({ items: 3, delayMs: 9_000 });
    expect(await popAll(scene)).toEqual([]);
    await scene.queue.scheduleTend(scene.id, scene.generation, scene.generation + 9_000);
    moveClock(8_000);
    expect(await tickOnce(scene)).toBe(0);
    moveClock(1_100);
    expect(await tickOnce(scene)).toBe(1);
    expect(await popAll(scene)).toHaveLength(1);
    const worker = new Hand(scene);
    expect(await worker.enter(3)).toMatchObject({ permits: 3 });
    await inspect(scene);
  });

  it('grants nothing to who enters early', async () => {
    const scene = await given.sealed({ items: 3, delayMs: 9_000 });
    expect(await new Hand(scene).enter(3, [])).toMatchObject({ permits: 0, mint: 0 });
  });

  it('says when it has to be tended, and the same when asked again', async () => {
    const scene = await given.opened();
    const options = { delayMs: 9_000, deadlineMs: 60_000 };
    const created = await create(scene, options);
    expect(created).toMatchObject({ verdict: 'created' });
    const { tendAt } = created as { tendAt: number };
    expect(tendAt - scene.generation).toBeGreaterThanOrEqual(9_000);
    expect(tendAt - scene.generation).toBeLessThan(12_000);
    moveClock(1_000);
    expect(await create(scene, options)).toEqual(created);
    const plain = await given.opened();
    expect(await create(plain)).toMatchObject({ verdict: 'created', tendAt: 0 });
  });

  it('is tended in time though no call scheduled that', async () => {
    const scene = await given.sealed({ items: 3, delayMs: 50_000 });
    moveClock(21_000);
    expect(await tickOnce(scene)).toBe(1);
    moveClock(29_100);
    expect(await tickOnce(scene)).toBe(1);
    expect(await popAll(scene)).toHaveLength(1);
  });
});

describe('a request with a deadline', () => {
  it('ends at its deadline: the rest is cancelled, what runs may still succeed', async () => {
    const scene = await given.sealed({ items: 9, limit: 2, deadlineMs: 9_000 });
    const worker = new Hand(scene);
    const [first, second] = await worker.hold(2);
    await scene.queue.scheduleTend(scene.id, scene.generation, scene.generation + 9_000);
    await worker.settle([success(first!)], { keep: 2, running: 1 });
    moveClock(9_100);
    expect(await tickOnce(scene)).toBe(1);
    const picture = await inspect(scene);
    expect(picture).toMatchObject({ status: 'cancelling', counts: { cancelled: 7, inFlight: 1 } });
    expect(picture.fields['endReason']).toBe('deadline');
    expect(await worker.trySettle([success(second!)])).toEqual({
      verdict: 'complete',
      outcome: 'failed',
    });
    expect(await scene.request.state()).toMatchObject({ endReason: 'deadline', succeeded: 2 });
  });

  it('is tended then, also while only its tokens are out', async () => {
    const scene = await given.sealed({ items: 9, deadlineMs: 100_000 });
    moveClock(21_000);
    await tickOnce(scene);
    const tended = await scene.request.tend(scene.generation, '');
    expect((tended as { next: number }).next - scene.generation).toBeGreaterThanOrEqual(99_000);
    moveClock(80_000);
    await tickOnce(scene);
    expect(await scene.request.state()).toMatchObject({ status: 'complete', outcome: 'failed' });
  });

  it('ends also while it is still open, and takes no more then', async () => {
    const scene = await given.filled({ items: 2, deadlineMs: 9_000 });
    moveClock(9_100);
    await scene.request.tend(scene.generation, '');
    expect(await scene.request.state()).toMatchObject({ outcome: 'failed', cancelled: 2 });
    await expect(append(scene, 1, 2)).rejects.toThrow('complete');
  });

  it('that is cancelled before keeps the reason of that', async () => {
    const scene = await given.sealed({ items: 2, limit: 1, deadlineMs: 9_000 });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    await scene.request.cancel(scene.generation);
    moveClock(9_100);
    await scene.request.tend(scene.generation, '');
    expect(await worker.trySettle([success(only!)])).toMatchObject({ outcome: 'cancelled' });
    expect(await scene.request.state()).toMatchObject({ endReason: 'cancel' });
  });

  it('that is done in time is no other than any', async () => {
    const scene = await given.sealed({ items: 1, deadlineMs: 9_000 });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    expect(await worker.trySettle([success(only!)])).toMatchObject({ outcome: 'succeeded' });
    expect(await scene.request.state()).toMatchObject({ endReason: '' });
  });
});
