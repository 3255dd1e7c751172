import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  append,
  back,
  failure,
  given,
  Hand,
  holds,
  LEASE_MS,
  popAll,
  success,
  tickOnce,
} from '../support/given.js';
import { inspect } from '../support/peek.js';

useTestClock();

/** A worker holds three permits of nine sub-requests. */
async function held() {
  const scene = await given.sealed({ items: 9, limit: 3 });
  const worker = new Hand(scene);
  const entries = await worker.hold(3);
  return { scene, worker, entries };
}

describe('hold', () => {
  it('grants, mints and gives out nothing until it is over', async () => {
    const { scene, worker, entries } = await held();
    const { verdict } = await holds(scene).hold(scene.generation, 9_000);
    expect(verdict).toBe('held');
    const [first, second] = entries;
    // Two handlers run on; the third permit is taken back, the given-back entry stays where it is.
    expect(await worker.settle([back(first!)], { keep: 3, running: 2 })).toMatchObject({
      permits: 2,
      mint: 0,
    });
    expect(await worker.take(1)).toEqual([]);
    expect(await new Hand(scene, 'other').tryEnter(3)).toMatchObject({ permits: 0, mint: 0 });
    expect(await worker.settle([success(second!)], { keep: 2, running: 1 })).toMatchObject({
      permits: 1,
      mint: 0,
    });
    expect(await scene.request.tend(scene.generation, '')).toMatchObject({ mint: 0 });
    moveClock(9_001);
    expect(await scene.request.tend(scene.generation, '')).toMatchObject({ mint: 1 });
    expect(await worker.settle([success(entries[2]!)])).toMatchObject({ permits: 1, dueNow: 1 });
    await inspect(scene);
  });

  it('mints nothing for what is appended meanwhile', async () => {
    const scene = await given.created();
    await holds(scene).hold(scene.generation, 9_000);
    await append(scene, 3);
    expect(await inspect(scene)).toMatchObject({ out: 0, counts: { ready: 3 } });
    moveClock(21_000);
    await tickOnce(scene);
    expect(await popAll(scene)).toHaveLength(1);
  });

  it('goes on by itself when nobody noted when it ends', async () => {
    const { scene, worker, entries } = await held();
    // Its worker returns everything and dies before it schedules a tend: only ticks of others are left.
    await holds(scene).hold(scene.generation, 60_000);
    await worker.settle(entries.map(back), { keep: 0 });
    expect((await inspect(scene)).granted).toBe(0);
    moveClock(21_000);
    await tickOnce(scene);
    await tickOnce(scene);
    expect(await popAll(scene)).toHaveLength(1);
    moveClock(40_000);
    await tickOnce(scene);
    expect((await inspect(scene)).out).toBe(1);
    expect(await popAll(scene)).toHaveLength(1);
  });

  it('never becomes shorter', async () => {
    const { scene } = await held();
    const long = await holds(scene).hold(scene.generation, 60_000);
    const short = await holds(scene).hold(scene.generation, 1_000);
    expect(short).toEqual(long);
  });

  it('keeps the reason of the longest, also after the clock went back', async () => {
    const { scene } = await held();
    const reason = async () => (await inspect(scene)).fields['heldFor']?.split(' ')[2];
    await holds(scene).hold(scene.generation, 5_000, 'memory');
    expect(await reason()).toBe('memory');
    moveClock(-60_000);
    await scene.request.tend(scene.generation, '');
    expect(await reason()).toBe('memory');
    await holds(scene).hold(scene.generation, 9_000);
    expect(await reason()).toBe('');
    await holds(scene).hold(scene.generation, 5_000, 'memory');
    expect(await reason()).toBe('');
  });

  it('does not keep a request from ending', async () => {
    const { scene, worker, entries } = await held();
    await holds(scene).hold(scene.generation, 60_000);
    await scene.request.cancel(scene.generation);
    expect(await worker.trySettle(entries.map((entry) => success(entry)))).toMatchObject({
      verdict: 'complete',
      outcome: 'cancelled',
    });
  });

  it('does not keep the work of a dead worker from being taken back', async () => {
    const { scene } = await held();
    await holds(scene).hold(scene.generation, 60_000);
    moveClock(LEASE_MS + 1);
    await scene.request.tend(scene.generation, '');
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 0, ready: 9 });
  });
});

describe('a failure', () => {
  it('has no further attempt when its delay is -1', async () => {
    const scene = await given.sealed({ items: 1, attempts: 5 });
    const worker = new Hand(scene);
    const [only] = await worker.hold(1);
    expect(await worker.trySettle([failure(only!, -1)])).toMatchObject({ outcome: 'failed' });
    const { counts, results } = await inspect(scene);
    expect(counts).toMatchObject({ failed: 1, delayed: 0 });
    expect(results).toEqual([{ index: 0, failed: true, value: '1' }]);
  });
});
