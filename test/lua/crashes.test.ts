import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import {
  back,
  failure,
  given,
  Hand,
  items,
  LEASE_MS,
  PRODUCER,
  type Scene,
  success,
} from '../support/given.js';
import { inspect, snapshot } from '../support/peek.js';

useTestClock();

const tend = ({ request, generation }: Scene) => request.tend(generation, '');

/** All leases of workers end, and the request is tended. */
async function leasesEnd(scene: Scene) {
  moveClock(LEASE_MS + 1);
  return tend(scene);
}

/** A worker takes up to `n` due ones, the first of them alone if so asked, and dies. */
async function crash(scene: Scene, name: string, n = 1, how: 'alone' | 'among others' = 'alone') {
  const worker = new Hand(scene, name);
  await worker.enter(n);
  const [first] = await worker.take(n);
  if (how === 'alone') {
    expect(await scene.request.runAlone(scene.generation, name, 1, [first!.entry])).toMatchObject({
      verdict: 'ok',
    });
  }
  return leasesEnd(scene);
}

/** Request of one sub-request that has crashed `times` times. */
async function crashedBefore(times: number, maxCrashes = 3): Promise<Scene> {
  const scene = await given.sealed({ items: 1, limit: 1, maxCrashes });
  await new Hand(scene, 'first').hold(1);
  await leasesEnd(scene);
  for (let i = 1; i < times; i += 1) await crash(scene, `again ${i}`, 1, 'among others');
  expect((await inspect(scene)).crashes).toEqual({ 0: times });
  return scene;
}

describe('a crash', () => {
  it('is counted for each sub-request that a worker held when its lease ended', async () => {
    const scene = await given.filled({ items: 5, limit: 5 });
    const dead = new Hand(scene, 'dead');
    const [first] = await dead.hold(3);
    await dead.settle([success(first!)], { keep: 2, running: 2 });
    await leasesEnd(scene);
    const { crashes, tries, counts } = await inspect(scene);
    expect(crashes).toEqual({ 1: 1, 2: 1 });
    expect(tries).toEqual({});
    expect(counts).toMatchObject({ succeeded: 1, ready: 4, inFlight: 0 });
  });

  it('is reported to the next worker that takes it, and before its last attempt it is a suspect', async () => {
    const scene = await crashedBefore(1);
    const worker = new Hand(scene, 'second');
    await worker.enter(1);
    expect(await worker.take(1)).toMatchObject([{ crashes: 1, tries: 0, suspect: false }]);
    await leasesEnd(scene);
    const third = new Hand(scene, 'third');
    await third.enter(1);
    expect(await third.take(1)).toMatchObject([{ crashes: 2, suspect: true }]);
  });

  it('is not an attempt, and an attempt is not a crash', async () => {
    const scene = await given.filled({ items: 1, limit: 1, attempts: 3 });
    const worker = new Hand(scene, 'failing');
    const [only] = await worker.hold(1);
    await worker.settle([failure(only!)]);
    await worker.take(1);
    await leasesEnd(scene);
    expect(await inspect(scene)).toMatchObject({ tries: { 0: 1 }, crashes: { 0: 1 } });
    const next = new Hand(scene, 'next');
    await next.enter(1);
    const [again] = await next.take(1);
    expect(again).toMatchObject({ tries: 1, crashes: 1 });
    await next.settle([failure(again!)]);
    expect(await inspect(scene)).toMatchObject({ tries: { 0: 2 }, crashes: { 0: 1 } });
  });

  it('is not what a worker holds without a permit: it read late, or closed', async () => {
    const scene = await given.filled({ items: 4, limit: 4 });
    const closed = new Hand(scene, 'closed');
    const [first] = await closed.hold(2);
    await closed.settle([back(first!)], { keep: 0 });
    await closed.read(1);
    await tend(scene);
    await leasesEnd(scene);
    const { crashes, counts } = await inspect(scene);
    expect(crashes).toEqual({});
    expect(counts).toMatchObject({ ready: 4, inFlight: 0 });
  });

  it('is not what was given back unstarted', async () => {
    const scene = await given.filled({ items: 2, limit: 2 });
    const worker = new Hand(scene);
    const [first] = await worker.hold(2);
    await worker.settle([back(first!)], { keep: 1, running: 1 });
    await leasesEnd(scene);
    expect((await inspect(scene)).crashes).toEqual({ 1: 1 });
  });

  it('is counted once, however often the request is tended', async () => {
    const scene = await given.filled({ items: 2, limit: 2 });
    await new Hand(scene, 'dead').hold(2);
    await leasesEnd(scene);
    const once = await inspect(scene);
    await tend(scene);
    expect((await inspect(scene)).crashes).toEqual(once.crashes);
  });

  it('is remembered of a worker that had more entries than one tend takes back', async () => {
    const scene = await given.filled({ items: 250, limit: 250 });
    await new Hand(scene, 'dead').hold(250);
    const counted: number[] = [];
    const remembered: boolean[] = [];
    moveClock(LEASE_MS + 1);
    for (let i = 0; i < 4; i += 1) {
      await tend(scene);
      const { crashes, fields } = await inspect(scene);
      counted.push(Object.values(crashes).filter((n) => n === 1).length);
      remembered.push('crashed:dead' in fields);
    }
    expect(counted).toEqual([100, 200, 250, 250]);
    expect(remembered).toEqual([true, true, false, false]);
  });

  it('is forgotten of such a worker when it comes back', async () => {
    const scene = await given.filled({ items: 251, limit: 251 });
    const sleeper = new Hand(scene, 'sleeper');
    await sleeper.hold(250);
    await leasesEnd(scene);
    await sleeper.enter(1, []);
    await tend(scene);
    expect((await inspect(scene)).fields).not.toHaveProperty('crashed:sleeper');
    await sleeper.settle([], { keep: 0 });
    await tend(scene);
    expect(Object.keys((await inspect(scene)).crashes)).toHaveLength(100);
  });
});

describe('the last crash', () => {
  it('fails the sub-request, and completes the request', async () => {
    const scene = await crashedBefore(2);
    const verdict = await crash(scene, 'last');
    const crashed = { count: 1, indexes: [0] };
    expect(verdict).toEqual({ verdict: 'complete', outcome: 'failed', crashed });
    const { counts, failed, results } = await inspect(scene);
    expect(counts).toMatchObject({ total: 1, failed: 1, succeeded: 0 });
    expect(JSON.parse(failed['0']!)).toEqual({
      name: 'CrashError',
      message:
        'its worker ended 3 times while it ran, at last while it ran alone: worker last stopped renewing its lease',
      crashes: 3,
      worker: 'last',
    });
    expect(failed['0:payload']).toBe('item 0');
    expect(results).toEqual([{ index: 0, failed: true, value: '0' }]);
  });

  it('leaves the others of its request alone, and nothing of itself', async () => {
    const scene = await given.sealed({ items: 3, limit: 3, maxCrashes: 2 });
    await new Hand(scene, 'first').hold(1);
    await leasesEnd(scene);
    expect(await crash(scene, 'last')).toMatchObject({ verdict: 'ok' });
    expect(await inspect(scene)).toMatchObject({
      counts: { total: 3, failed: 1, ready: 2, inFlight: 0 },
    });
    const { client } = scene.connection;
    expect(await client.exists(scene.request.keys.tries)).toBe(0);
  });

  it('does not count for what did not run alone', async () => {
    const scene = await crashedBefore(2);
    await crash(scene, 'waiting', 1, 'among others');
    await crash(scene, 'waiting again', 1, 'among others');
    expect(await inspect(scene)).toMatchObject({ crashes: { 0: 4 }, counts: { ready: 1 } });
    expect(await crash(scene, 'alone')).toMatchObject({ outcome: 'failed' });
  });

  it('does not count for what ran alone and waits again, with the same worker', async () => {
    const scene = await crashedBefore(2);
    const worker = new Hand(scene);
    await worker.enter(1);
    const [only] = await worker.take(1);
    await scene.request.runAlone(scene.generation, 'worker', 1, [only!.entry]);
    await worker.settle([back(only!)]);
    await worker.take(1);
    await leasesEnd(scene);
    expect(await inspect(scene)).toMatchObject({ crashes: { 0: 3 }, counts: { ready: 1 } });
  });

  it('is the first one when one is all it gets, alone or not', async () => {
    const scene = await given.sealed({ items: 150, limit: 150, maxCrashes: 1 });
    await new Hand(scene, 'dead').hold(120);
    await leasesEnd(scene);
    await tend(scene);
    const { counts, results, failed } = await inspect(scene);
    expect(counts).toMatchObject({ failed: 120, ready: 30, inFlight: 0 });
    expect(results).toHaveLength(120);
    expect(JSON.parse(failed['7']!).message).toBe(
      'its worker ended 1 time while it ran: worker dead stopped renewing its lease',
    );
  });

  it('counts as cancelled in a request that is being cancelled', async () => {
    const scene = await crashedBefore(2);
    const worker = new Hand(scene);
    await worker.enter(1);
    const [only] = await worker.take(1);
    await scene.request.runAlone(scene.generation, 'worker', 1, [only!.entry]);
    await scene.request.cancel(scene.generation);
    expect(await leasesEnd(scene)).toEqual({ verdict: 'complete', outcome: 'cancelled' });
    expect((await inspect(scene)).counts).toMatchObject({ cancelled: 1, failed: 0 });
  });

  it('is final: a late success of the worker that was given up changes nothing', async () => {
    const scene = await given.filled({ items: 2, limit: 2, maxCrashes: 1 });
    const sleeper = new Hand(scene, 'sleeper');
    const [first, second] = await sleeper.hold(2);
    await leasesEnd(scene);
    await sleeper.settle([success(first!), failure(second!)]);
    expect((await inspect(scene)).counts).toMatchObject({ failed: 2, succeeded: 0, inFlight: 0 });
  });

  it('completes nothing that is still open', async () => {
    const scene = await given.filled({ items: 1, limit: 1, maxCrashes: 1 });
    await new Hand(scene, 'dead').hold(1);
    expect(await leasesEnd(scene)).toMatchObject({ verdict: 'ok', mint: 0 });
    await scene.request.append(scene.generation, PRODUCER, 1, items(1));
    expect((await inspect(scene)).counts).toMatchObject({ failed: 1, ready: 1 });
  });

  it('leaves the state of one tend when the request is tended twice', async () => {
    const scene = await given.sealed({ items: 3, limit: 3, maxCrashes: 1 });
    await new Hand(scene, 'dead').hold(2);
    await leasesEnd(scene);
    const once = await inspect(scene);
    await tend(scene);
    const { counts, failed, results } = await inspect(scene);
    expect({ counts, failed, results }).toEqual({
      counts: once.counts,
      failed: once.failed,
      results: once.results,
    });
  });

  it('is forgiven when its last attempt fails instead', async () => {
    const scene = await given.filled({ items: 1, limit: 1, attempts: 1 });
    await new Hand(scene, 'dead').hold(1);
    await leasesEnd(scene);
    const worker = new Hand(scene);
    await worker.enter(1);
    const [only] = await worker.take(1);
    await worker.settle([failure(only!)], { keep: 0 });
    const { client } = scene.connection;
    expect((await inspect(scene)).counts).toMatchObject({ failed: 1 });
    expect(await client.exists(scene.request.keys.tries)).toBe(0);
  });
});

describe('a suspect', () => {
  it('runs alone only for the worker that has it, under a permit', async () => {
    const scene = await crashedBefore(2);
    const { request, generation } = scene;
    const worker = new Hand(scene);
    await worker.enter(1);
    const [only] = await worker.take(1);
    const before = await snapshot(scene);
    expect(await request.runAlone(generation, 'other', 1, [only!.entry])).toMatchObject({
      verdict: 'lost',
    });
    expect(await request.runAlone(generation - 1, 'worker', 1, [only!.entry])).toMatchObject({
      verdict: 'gone',
    });
    expect(await snapshot(scene)).toEqual(before);
    expect(await request.runAlone(generation, 'worker', 1, [only!.entry])).toMatchObject({
      verdict: 'ok',
    });
    await worker.settle([back(only!)], { keep: 1 });
    expect(await request.runAlone(generation, 'worker', 1, [only!.entry])).toMatchObject({
      verdict: 'lost',
    });
  });
});
