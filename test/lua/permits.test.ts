import { describe, expect, it } from 'vitest';
import { moveClock, useTestClock } from '../support/clock.js';
import { append, back, failure, given, Hand, LEASE_MS, success } from '../support/given.js';
import { inspect } from '../support/peek.js';

useTestClock();

describe('enter', () => {
  it('grants what the worker has room for, what the limit leaves, and what is ready', async () => {
    const scene = await given.filled({ items: 5, limit: 4 });
    expect((await new Hand(scene, 'a').enter(3)).permits).toBe(3);
    expect((await new Hand(scene, 'b').enter(3)).permits).toBe(1);
    expect((await new Hand(scene, 'c').enter(3)).permits).toBe(0);
    const small = await given.filled({ items: 2, limit: 4 });
    expect((await new Hand(small, 'a').enter(3)).permits).toBe(2);
  });

  it('adds to the permits that the worker holds', async () => {
    const scene = await given.filled({ items: 5, limit: 4 });
    const worker = new Hand(scene);
    await worker.enter(1);
    expect((await worker.enter(2)).permits).toBe(3);
    expect((await inspect(scene)).granted).toBe(3);
  });

  it('brings the first sub-requests with the permits, as many as the call says', async () => {
    const enter = (scene: Awaited<ReturnType<typeof given.filled>>, want: number, most: number) =>
      scene.request.enter({
        generation: scene.generation,
        worker: 'worker',
        op: 1,
        want,
        leaseMs: LEASE_MS,
        tasks: '*',
        epochs: ['1'],
        most,
      });
    const scene = await given.filled({ items: 3, limit: 2 });
    const entered = await enter(scene, 3, 2);
    expect(entered).toMatchObject({
      ...{ permits: 2, ready: 1, mint: 0, grantNo: '1' },
      entries: [0, 1].map((index) => ({ index, payload: expect.any(String), tries: 0 })),
    });
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 2, ready: 1 });
    expect(await enter(scene, 3, 2)).toMatchObject({ permits: 2, ready: -1, entries: [] });
    const many = await given.filled({ items: 3, limit: 3 });
    expect(await enter(many, 3, 2)).toMatchObject({
      ...{ permits: 3, ready: 1 },
      entries: [{ index: 0 }, { index: 1 }],
    });
  });

  it('leaves new work where it is while returned work is due', async () => {
    const scene = await given.filled({ items: 3, limit: 3 });
    const other = new Hand(scene, 'other');
    const [first] = await other.hold(1);
    await other.settle([back(first!)], { keep: 0 });
    const { generation } = scene;
    const entered = await scene.request.enter({
      ...{ generation, worker: 'worker', op: 1, want: 3, leaseMs: LEASE_MS, tasks: '*' },
      ...{ epochs: [], most: 16 },
    });
    expect(entered).toMatchObject({ permits: 3, dueNow: 1, entries: [] });
  });

  it('mints the token that is missing when one brought a worker for nothing', async () => {
    const scene = await given.filled({ items: 3, limit: 2 });
    const entered = await new Hand(scene).enter(0);
    expect(entered).toMatchObject({ permits: 0, mint: 1 });
    expect((await inspect(scene)).out).toBe(1);
  });

  it('counts a token of this epoch, of the one before, and no other', async () => {
    const scene = await given.filled({ items: 9, limit: 4 });
    await scene.request.tend(scene.generation, '');
    const turned = await inspect(scene);
    expect(turned).toMatchObject({ epoch: 2, out: 0, outBefore: 1 });
    const worker = new Hand(scene);
    await worker.enter(1, [1]);
    expect(await inspect(scene)).toMatchObject({ outBefore: 0, out: 1 });
    expect(await worker.enter(0, [7, 0])).toMatchObject({ mint: 0 });
    expect(await worker.enter(0, [2])).toMatchObject({ mint: 1 });
    expect(await inspect(scene)).toMatchObject({ outBefore: 0, out: 1 });
  });

  it('grants nothing of a request that is being cancelled', async () => {
    const scene = await given.filled();
    await new Hand(scene, 'a').hold(1);
    await scene.request.cancel(scene.generation);
    expect(await new Hand(scene, 'b').enter(1)).toMatchObject({ permits: 0, mint: 0 });
  });

  it('says that the request is complete', async () => {
    const scene = await given.sealed({ items: 0 });
    expect(await new Hand(scene).tryEnter(1)).toEqual({
      verdict: 'complete',
      outcome: 'succeeded',
    });
  });

  it('parks a request whose task the worker does not serve, until one comes that does', async () => {
    const scene = await given.filled({ task: 'census', limit: 2 });
    const stranger = new Hand(scene, 'stranger');
    expect(await stranger.tryEnter(1, [1], ' tax  censuses ')).toEqual({
      verdict: 'unserved',
      task: 'census',
      priority: 50,
    });
    const parked = await inspect(scene);
    expect(parked.out).toBe(0);
    expect(await scene.request.tend(scene.generation, '')).toMatchObject({ parked: '+census' });
    const server = new Hand(scene, 'server');
    expect(await server.tryEnter(1, [], ' tax census ')).toMatchObject({ permits: 1 });
    expect(await scene.request.tend(scene.generation, '')).toMatchObject({ parked: '' });
  });

  it('takes a request without a task for one that only a handler of all names serves', async () => {
    const scene = await given.filled();
    const worker = new Hand(scene);
    expect(await worker.tryEnter(1, [1], ' census ')).toMatchObject({ verdict: 'unserved' });
    expect(await worker.tryEnter(1, [1], '*')).toMatchObject({ permits: 1, task: '' });
  });

  it('tells again that it does not serve the task when the call is sent again', async () => {
    const scene = await given.filled({ task: 'census', items: 9, limit: 9 });
    await new Hand(scene, 'server').tryEnter(3, [1], ' census ');
    expect((await inspect(scene)).out).toBe(3);
    const { request, generation } = scene;
    const enter = () =>
      request.enter({
        generation,
        worker: 'w',
        op: 1,
        want: 1,
        leaseMs: LEASE_MS,
        tasks: ' tax ',
        epochs: ['1'],
      });
    expect(await enter()).toEqual(await enter());
    expect((await inspect(scene)).out).toBe(2);
  });
});

describe('take', () => {
  it('hands out what is ready, with its payload and its failed attempts', async () => {
    const scene = await given.filled({ items: 3, attempts: 3 });
    const worker = new Hand(scene);
    const [first, second, third] = await worker.hold(3);
    await worker.settle([failure(first!), back(second!), failure(third!, 9_000)]);
    const taken = await worker.take(9);
    expect(taken).toMatchObject([
      { index: 1, payload: 'item 1', tries: 0 },
      { index: 0, payload: 'item 0', tries: 1 },
    ]);
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 2, delayed: 1 });
    moveClock(9_000);
    expect(await worker.take(9)).toMatchObject([{ index: 2, tries: 1 }]);
  });

  it('takes no more than it is asked for', async () => {
    const scene = await given.filled({ items: 3 });
    const worker = new Hand(scene);
    const entries = await worker.hold(3);
    await worker.settle(entries.map((entry) => back(entry)));
    expect(await worker.take(2)).toHaveLength(2);
    expect((await inspect(scene)).counts).toMatchObject({ inFlight: 2, ready: 1 });
  });

  it('gives nothing to a worker without permits, or when the request is being cancelled', async () => {
    const scene = await given.filled({ items: 2 });
    const worker = new Hand(scene);
    const [first] = await worker.hold(2);
    await worker.settle([back(first!)], { keep: 2, running: 1 });
    expect(await scene.request.take(scene.generation, 'other', 1)).toBe('lost');
    await scene.request.cancel(scene.generation);
    expect(await worker.take(1)).toEqual([]);
  });
});

describe('renew', () => {
  it('extends the lease', async () => {
    const scene = await given.filled();
    const worker = new Hand(scene);
    await worker.hold(1);
    moveClock(LEASE_MS - 1_000);
    expect(await worker.renew()).toEqual({ verdict: 'ok', permits: 1 });
    moveClock(LEASE_MS - 1_000);
    await scene.request.tend(scene.generation, '');
    expect((await inspect(scene)).permits).toEqual({ worker: 1 });
  });

  it('does not bring back permits that were withdrawn', async () => {
    const scene = await given.filled();
    const worker = new Hand(scene);
    await worker.hold(1);
    moveClock(LEASE_MS);
    await scene.request.tend(scene.generation, '');
    expect(await worker.renew()).toMatchObject({ verdict: 'lost' });
    expect(await inspect(scene)).toMatchObject({ permits: {}, granted: 0 });
  });

  it('keeps what handlers report until they end', async () => {
    const scene = await given.filled({ items: 2 });
    const worker = new Hand(scene);
    const [first] = await worker.hold(2);
    const { request, generation } = scene;
    await request.renew(generation, 'worker', LEASE_MS, [0, 25, 1, 50]);
    expect((await request.inspect())?.progress).toEqual({ 0: '25', 1: '50' });
    await worker.settle([success(first!)], { keep: 1, running: 1 });
    expect((await request.inspect())?.progress).toEqual({ 1: '50' });
  });

  it('says that the request is gone when it is complete', async () => {
    const scene = await given.sealed({ items: 0 });
    expect(await new Hand(scene).renew()).toMatchObject({ verdict: 'gone' });
  });
});

describe('the permits of all workers', () => {
  it('are never above the limit, however workers come and go', async () => {
    const scene = await given.filled({ items: 20, limit: 5 });
    const workers = Array.from({ length: 4 }, (_, i) => new Hand(scene, `w${i}`));
    for (let round = 0; round < 3; round += 1) {
      for (const worker of workers) {
        const { permits } = await worker.enter(2);
        const entries = await worker.read(permits);
        await inspect(scene);
        await worker.settle(
          entries.map((entry) => success(entry)),
          { keep: round % 2 },
        );
        await inspect(scene);
      }
    }
    await append(scene, 1, 20);
    await inspect(scene);
  });
});
